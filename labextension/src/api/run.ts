/** The code that an experiment was captured from. */

import { request } from './request';

export interface RunCode {
  script: string;
  /** For each line of the script "label:line" of a cell, or "". */
  source_map: string[];
}

export async function showRunCode(id: string): Promise<RunCode> {
  return (await request(`experiments/${encodeURIComponent(id)}/code`)) as RunCode;
}

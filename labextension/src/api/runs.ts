/** Operations on one experiment that the code view and the comparison ask. */

import type { Json } from '../../widgets/lib/frames';
import type { CurveRows } from './experiment';
import { request } from './request';

export interface TrialRow {
  number: number;
  state: string;
  value: number | null;
  params: Record<string, Json>;
  attempt: number;
  started_s: number | null;
  ended_s: number | null;
  reason: string;
}

export type Curve = Omit<CurveRows, 'points'>;

export interface CapturedName {
  name: string;
  /** import, source, data, parameter, builtin, file or skipped. */
  how: string;
  origin: string;
  size_bytes: number;
  stale: string;
}

export interface Code {
  script: string;
  header: string;
  captured: CapturedName[];
  differences: string[];
  /** By line of the script: the cell and its line, or "". */
  source_map: string[];
}

/** The captured script, and what was captured. */
export async function showCode(id: string): Promise<Code> {
  return (await request(`${pathOf(id)}/code`)) as Code;
}

/** The best trial; without an objective the first one, and undefined where there is none. */
export async function bestTrial(id: string): Promise<TrialRow | undefined> {
  return (await trials(id, { sort: 'best', limit: 1 }))[0];
}

/** One trial; undefined where there is no such number. */
export async function oneTrial(id: string, number: number): Promise<TrialRow | undefined> {
  const [trial] = await trials(id, { sort: 'number', offset: number - 1, limit: 1 });
  return trial?.number === number ? trial : undefined;
}

/** One trial's curve of a metric; undefined where it has none. */
export async function oneCurve(
  id: string,
  metric: string,
  trial: number,
  most: number,
): Promise<Curve | undefined> {
  const query = { metric, trials: String(trial), max_points: most };
  const { curves } = (await request(`${pathOf(id)}/series`, { query })) as { curves: Curve[] };
  return curves[0];
}

async function trials(id: string, query: Record<string, string | number>): Promise<TrialRow[]> {
  const answer = (await request(`${pathOf(id)}/trials`, { query })) as { trials: TrialRow[] };
  return answer.trials;
}

function pathOf(id: string): string {
  return `experiments/${encodeURIComponent(id)}`;
}

/** The captured code of an experiment, or one sentence about why it is not there. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { Refusal } from '../api/request';
import type { Code } from '../api/runs';
import { showCode } from '../api/runs';

const NOT_FOUND = 404;

/** @throws Error With the sentence; it names the experiment as `name`. */
export async function keptCode(id: string, name: string, trans: TranslationBundle): Promise<Code> {
  try {
    return await showCode(id);
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== NOT_FOUND) throw error;
    throw new Error(trans.__('The code of %1 is no longer kept. Run its cell again to capture it.', name));
  }
}

/** What a row says of an experiment, in words. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { duration, number } from '../../widgets/lib/format';
import type { Experiment } from '../api/experiments';

const ENDED = new Set(['SUCCEEDED', 'FAILED', 'CANCELLED', 'EARLY_STOPPED', 'PREEMPTED', 'LOST']);

/** How many of its trials have ended. */
export function ended(experiment: Experiment): number {
  const counts = Object.entries(experiment.counts);
  return counts.reduce((sum, [state, many]) => sum + (ENDED.has(state) ? many : 0), 0);
}

export function facts(experiment: Experiment, trans: TranslationBundle): string[] {
  const found = [stateName(experiment.state, trans), `${ended(experiment)}/${experiment.trials}`];
  if (experiment.best && experiment.objective)
    found.push(`${number(experiment.best.value)} ${experiment.objective.label}`); // a narrow row shows its begin
  if (experiment.eta_s !== null) found.push(trans.__('%1 left', duration(experiment.eta_s)));
  else if (experiment.final) found.push(duration(experiment.took_s));
  return found;
}

export function stateName(state: string, trans: TranslationBundle): string {
  const names: Record<string, string> = {
    WAITING: trans.__('waiting'),
    RUNNING: trans.__('running'),
    STOPPING: trans.__('stopping'),
    SUCCEEDED: trans.__('succeeded'),
    FAILED: trans.__('failed'),
    CANCELLED: trans.__('cancelled'),
  };
  return names[state] ?? state.toLowerCase();
}

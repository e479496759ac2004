/** Which actions fit which experiment; the server decides, this only offers nothing that it would refuse. */

import type { Action } from '../api/actions';
import type { Experiment } from '../api/experiments';

const RESUMED = ['CANCELLED', 'PREEMPTED', 'LOST'];
const RETRIED = [...RESUMED, 'FAILED'];

type Known = Pick<Experiment, 'final' | 'counts'>;

export function fits(action: Action, experiment: Known): boolean {
  if (action === 'stop') return !experiment.final;
  if (action === 'delete') return experiment.final;
  if (action === 'retry') return hasTrials(experiment, RETRIED);
  if (action === 'resume') return hasTrials(experiment, RESUMED);
  return true;
}

function hasTrials(experiment: Known, states: string[]): boolean {
  return states.some((state) => (experiment.counts[state] ?? 0) > 0);
}

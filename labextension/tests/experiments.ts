/** Experiments as the server lists them. */

import type { Experiment } from '../src/api/experiments';

export function experiment(known: Partial<Experiment>): Experiment {
  return {
    id: 'e1',
    name: 'digits',
    state: 'RUNNING',
    group: 'running',
    final: false,
    reason: '',
    notebook: '',
    tags: [],
    note: '',
    objective: null,
    best: null,
    trials: 1,
    counts: {},
    sparkline: [],
    ended_s: null,
    took_s: 0,
    eta_s: null,
    ...known,
  };
}

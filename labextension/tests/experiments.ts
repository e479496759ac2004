/** Experiments as the server lists them. */

import type { Experiment, ExperimentList } from '../src/api/experiments';

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
    backend: 'local',
    mode: 'batch',
    clones: true,
    objectives: [],
    gpus: 0,
    price: null,
    created_s: 0,
    ended_s: null,
    took_s: 0,
    eta_s: null,
    ...known,
  };
}

export function listOf(experiments: Experiment[], total = experiments.length): ExperimentList {
  return {
    total,
    groups: { running: total, queued: 0, done: 0 },
    notebooks: {},
    tags: [],
    places: [],
    metrics: [],
    last_change_id: 1,
    now_s: 0,
    manager: { alive: true },
    experiments,
  };
}

/** What a notebook keeps of an experiment, as views of one take it. Pure. */

import type { Block, Experiment, Snapshot, Trial } from '../../widgets/lib/frames';
import { ACTIVE } from '../../widgets/lib/frames';
import type { StoredRun } from './stored_run';

export function snapshotOf(run: StoredRun): Snapshot {
  const series: Block[] = run.curves.map(({ metric, trial, steps }) => [metric, trial, 1, 0, steps.length]);
  const steps = run.curves.flatMap((curve) => curve.steps);
  const values = run.curves.flatMap((curve) => curve.values.map((value) => value ?? NaN));
  const times = steps.map(() => run.begun_s ?? run.created_s); // not kept
  return {
    seq: 0,
    experiment: experimentOf(run),
    trials: trialsOf(run),
    series,
    steps: bytesOf(steps),
    values: bytesOf(values),
    times: bytesOf(times),
  };
}

function experimentOf(run: StoredRun): Experiment {
  const begun_s = run.begun_s ?? run.created_s;
  return {
    id: run.id,
    name: run.name,
    state: run.state,
    final: run.final,
    reason: run.reason,
    backend: '',
    ranks: 1,
    clones: false,
    objective: run.objective?.metric ?? null,
    objective_label: run.objective?.metric ?? null,
    objectives: [],
    best: run.best?.trial ?? null,
    trials: run.trials,
    begun_s,
    ended_s: run.ended_s,
    now_s: run.ended_s ?? begun_s,
    eta_s: null,
  };
}

/** How many trials are in each state is kept, not which: the best one has ended, if any has. */
function trialsOf(run: StoredRun): Trial[] {
  const states = Object.entries(run.counts).flatMap(([state, many]) =>
    Array<string>(Math.min(many, 1000)).fill(state),
  );
  states.sort((a, b) => Number(ACTIVE.has(a)) - Number(ACTIVE.has(b)));
  const numbers = new Set(
    [run.best?.trial, ...run.curves.map(({ trial }) => trial)].filter((n) => n !== undefined),
  );
  for (let number = 1; numbers.size < states.length; number++) numbers.add(number);
  return [...numbers].slice(0, states.length).map((number, i) => ({
    number,
    state: states[i] ?? '',
    params: {},
    value: number === run.best?.trial ? run.best.value : null,
    more_values: [],
    attempt: 1,
    started_s: run.begun_s,
    ended_s: null,
    reason: '',
    started_from: '',
    parent: null,
    runs_on: '',
  }));
}

function bytesOf(numbers: number[]): DataView {
  return new DataView(Float64Array.from(numbers).buffer);
}

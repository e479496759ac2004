/** What the server answers, as the views of one experiment take it. */

import type { Experiment, Trial } from '../../widgets/lib/frames';
import type { WholeCurves } from '../../widgets/lib/series';
import type { CurveRows, ExperimentDetails, TrialRow } from '../api/experiment';
import { numericOptions } from '../api/search_text';

export const MOST_CURVES = 200;
const NEWEST = 60;

export function experimentOf(details: ExperimentDetails, trials: readonly TrialRow[]): Experiment {
  const { resources, objective, best } = details;
  return {
    id: details.id,
    name: details.name,
    state: details.state,
    final: details.final,
    reason: details.reason,
    backend: details.backend,
    ranks: resources.nodes * resources.workers_per_node,
    clones: details.clones,
    objective: objective?.metric ?? null,
    objective_label: objective?.label ?? null,
    objectives: details.objectives,
    best: best?.trial ?? null,
    trials: Math.max(details.trials, trials.length),
    begun_s: details.begun_s,
    ended_s: details.ended_s,
    now_s: details.begun_s + details.took_s,
    eta_s: details.eta_s,
    options: numericOptions(details.search),
  };
}

export function trialOf(row: TrialRow): Trial {
  return {
    number: row.number,
    state: row.state,
    params: row.params,
    value: row.value === null ? null : numberOf(row.value),
    more_values: row.more_values,
    attempt: row.attempt,
    started_s: row.started_s,
    ended_s: row.ended_s,
    reason: row.reason || row.blocked_by,
    started_from: row.started_from,
    parent: row.parent,
    runs_on: placeOf(row),
  };
}

/** Backend, nodes and accelerators: `cluster: a, b (GPU 0, 1)`; "" while it waits. */
export function placeOf({ backend, nodes, gpus }: TrialRow): string {
  const where = nodes.length > 0 ? `${backend}: ${nodes.join(', ')}` : backend;
  return gpus.length > 0 ? `${where} (GPU ${gpus.join(', ')})` : where;
}

export function curvesOf(
  metric: string,
  trials: readonly number[],
  rows: readonly Omit<CurveRows, 'points'>[],
): WholeCurves {
  const curves = rows.map((row) => ({
    trial: row.trial,
    steps: Float64Array.from(row.steps),
    values: Float64Array.from(row.values, numberOf),
    times: Float64Array.from(row.times_s),
  }));
  return { metric, trials: [...trials], curves };
}

/** JSON has no infinity and no NaN: values come as `inf`, `-inf` and `nan`, and null is a gap in a curve. */
export function numberOf(value: number | string | null): number {
  if (typeof value === 'number') return value;
  if (value === null || value === 'nan') return NaN;
  return value.startsWith('-') ? -Infinity : Infinity;
}

/**
 * The trials whose curves are drawn: all, or where they are too many the best, the newest and the wanted ones.
 * @param direction `minimize` or `maximize`; undefined where trials are not ranked.
 */
export function drawnTrials(
  trials: readonly TrialRow[],
  direction: string | undefined,
  wanted: ReadonlySet<number>,
): number[] {
  // One that waits to begin again has the curve of before.
  const begun = trials.filter(({ started_s, attempt }) => started_s !== null || attempt > 1);
  if (begun.length <= MOST_CURVES) return begun.map(({ number }) => number);
  const newest = begun.slice(-NEWEST);
  const chosen = new Set([...begun.filter(({ number }) => wanted.has(number)), ...newest]);
  for (const trial of ranked(begun, direction)) {
    if (chosen.size >= MOST_CURVES) break;
    chosen.add(trial);
  }
  return [...chosen].map(({ number }) => number).sort((a, b) => a - b);
}

function ranked(trials: readonly TrialRow[], direction: string | undefined): TrialRow[] {
  if (direction === undefined) return [...trials].reverse();
  const sign = direction === 'maximize' ? -1 : 1;
  const valueOf = (trial: TrialRow): number => (trial.value === null ? NaN : sign * numberOf(trial.value));
  const valued = trials.filter((trial) => !Number.isNaN(valueOf(trial)));
  return valued.sort((a, b) => valueOf(a) - valueOf(b) || a.number - b.number);
}

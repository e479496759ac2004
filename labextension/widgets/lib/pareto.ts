/** Trials of several objectives: those that no other beats in one without being worse in another. */

import type { Objective, Trial } from './frames';

/** Only ended and running trials that have a value of each objective count. O(trials x front). */
export function paretoFront(objectives: readonly Objective[], trials: Iterable<Trial>): Trial[] {
  if (objectives.length < 2) return [];
  const signs = objectives.map(({ direction }) => (direction === 'maximize' ? -1 : 1));
  const valued = [...trials].flatMap((trial) => {
    const costs = costsOf(trial, signs);
    return costs ? [{ trial, costs }] : [];
  });
  valued.sort((a, b) => order(a.costs, b.costs) || a.trial.number - b.trial.number);
  const front: typeof valued = [];
  for (const one of valued) if (!front.some(({ costs }) => dominates(costs, one.costs))) front.push(one);
  return front.map(({ trial }) => trial).sort((a, b) => a.number - b.number);
}

/** Less is better in each; undefined where a value is missing. */
function costsOf({ value, more_values }: Trial, signs: readonly number[]): number[] | undefined {
  const values = [value, ...more_values].filter((found) => found !== null);
  if (values.length !== signs.length) return undefined;
  return values.map((found, i) => found * (signs[i] ?? 1));
}

function order(a: readonly number[], b: readonly number[]): number {
  return a.map((cost, i) => cost - (b[i] ?? 0)).find((difference) => difference !== 0) ?? 0;
}

function dominates(a: readonly number[], b: readonly number[]): boolean {
  return order(a, b) !== 0 && a.every((cost, i) => cost <= (b[i] ?? 0));
}

/** Which run is the best: only where all that have an objective have the same one. */

import type { Run } from './run';

export function bestRun(runs: readonly Run[]): Run | undefined {
  const valued = runs.filter((run) => run.details?.objective && (run.trial?.value ?? null) !== null);
  const objectives = new Set(valued.map((run) => JSON.stringify(run.details?.objective)));
  if (objectives.size !== 1) return undefined;
  const sign = valued[0]?.details?.objective?.direction === 'maximize' ? -1 : 1;
  const valueOf = (run: Run): number => sign * (run.trial?.value ?? Infinity);
  return [...valued].sort((a, b) => valueOf(a) - valueOf(b))[0];
}

/** What attempts of a trial have used of their node, as curves of a chart. Pure. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { AttemptUsage } from '../api/experiment';
import type { ToldCurve } from '../home/curves_wire';

/** How many bytes the unit of an axis has, and what it is called. */
type Unit = [bytes: number, name: string];

const UNITS: readonly Unit[] = [
  [1e9, 'GB'],
  [1e6, 'MB'],
];

/** The curves that are known: one per attempt and kind. */
export function usageCurves(attempts: readonly AttemptUsage[], trans: TranslationBundle): ToldCurve[] {
  const memory = unitOf(attempts.map(({ memory_bytes }) => memory_bytes));
  const gpuMemory = unitOf(attempts.map(({ gpu_memory_bytes }) => gpu_memory_bytes));
  return attempts.flatMap((usage) => [
    ...curve(usage, trans.__('CPU (%)'), usage.cpu_percent),
    ...curve(usage, trans.__('Memory (%1)', memory[1]), scaled(usage.memory_bytes, memory)),
    ...curve(usage, trans.__('GPU (%)'), usage.gpu_percent),
    ...curve(usage, trans.__('GPU memory (%1)', gpuMemory[1]), scaled(usage.gpu_memory_bytes, gpuMemory)),
  ]);
}

function curve(
  { attempt, seconds }: AttemptUsage,
  metric: string,
  values: (number | null)[] | null,
): ToldCurve[] {
  if (!values) return [];
  return [{ number: attempt, metric, curve: { trial: attempt, steps: seconds, values, times_s: seconds } }];
}

function unitOf(columns: ((number | null)[] | null)[]): Unit {
  const values = columns.flatMap((column) => column ?? []).filter((value) => value !== null);
  const most = values.reduce((greatest, value) => Math.max(greatest, value), 0);
  return UNITS.find(([bytes]) => most >= bytes) ?? [1e6, 'MB'];
}

function scaled(values: (number | null)[] | null, [bytes]: Unit): (number | null)[] | null {
  return values?.map((value) => (value === null ? null : value / bytes)) ?? null;
}

/** A curve in one spoken line. */

import { number } from './format';
import type { Series } from './series';

/** `val_acc 0.41 → 0.94, still rising`; "" before the first value. */
export function trend(metric: string, series: Series | undefined): string {
  if (!series || series.length === 0) return '';
  const values = series.values;
  const last = values[values.length - 1] ?? NaN;
  if (values.length === 1) return `${metric} ${number(last)}`;
  return `${metric} ${number(values[0])} → ${number(last)}, ${direction(series)}`;
}

/** Compares the mean of the newest tenth of the points with that of the tenth before it. */
function direction(series: Series): string {
  if (!Number.isFinite(series.values.at(-1))) return 'not a number now';
  const values = series.values.filter(Number.isFinite);
  if (values.length < 2) return 'one number so far';
  const size = Math.max(Math.floor(values.length / 10), 1);
  const change = mean(values.subarray(-size)) - mean(values.subarray(-2 * size, -size));
  const span = series.max - series.min;
  if (span === 0 || Math.abs(change) < 0.01 * span) return 'level now';
  return change > 0 ? 'still rising' : 'still falling';
}

function mean(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** A curve in one spoken line. */

import { number } from './format';
import type { Series } from './series';
import type { Translator } from './translator';

/** `val_acc 0.41 → 0.94, still rising`; "" before the first value. */
export function trend(metric: string, series: Series | undefined, trans: Translator): string {
  const line = fromTo(metric, series);
  return series && series.length > 1 ? `${line}, ${direction(series, trans)}` : line;
}

/** `val_acc 0.41 → 0.94`; "" before the first value. */
export function fromTo(metric: string, series: Series | undefined): string {
  if (!series || series.length === 0) return '';
  const { values } = series;
  const last = number(values[values.length - 1]);
  return values.length === 1 ? `${metric} ${last}` : `${metric} ${number(values[0])} → ${last}`;
}

/** Compares the mean of the newest tenth of the points with that of the tenth before it. */
function direction(series: Series, trans: Translator): string {
  if (!Number.isFinite(series.values.at(-1))) return trans.__('not a number now');
  const values = series.values.filter(Number.isFinite);
  if (values.length < 2) return trans.__('one value so far');
  const size = Math.max(Math.floor(values.length / 10), 1);
  const change = mean(values.subarray(-size)) - mean(values.subarray(-2 * size, -size));
  const span = series.max - series.min;
  if (span === 0 || Math.abs(change) < 0.01 * span) return trans.__('flat now');
  return change > 0 ? trans.__('still rising') : trans.__('still falling');
}

function mean(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

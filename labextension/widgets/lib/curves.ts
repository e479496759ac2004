/** The curves of one metric as a chart draws them: which trials, along which axis, how smooth. */

import type { Axis } from './choices';
import { metricAlong } from './choices';
import type { Series } from './series';
import type { Session } from './session';

/** The axis of the chart of a metric: the one that is chosen, but none lies along itself. */
export function axisOf({ choices, series }: Session, metric: string): Axis {
  const name = metricAlong(choices.axis);
  const isThere = name === undefined || (name !== metric && series.metrics.has(name));
  return isThere ? choices.axis : 'step';
}

export interface Curve {
  trial: number;
  /** Along the x axis; does not fall. */
  x: Float64Array;
  y: Float64Array;
  /** As reported. */
  raw: Float64Array;
  steps: Float64Array;
}

/** The curves of the trials that are not hidden, by number. */
export function curvesOf(session: Session, metric: string): Curve[] {
  const { hidden } = session.choices;
  const known = [...(session.series.metrics.get(metric)?.keys() ?? [])];
  const shown = known.filter((trial) => !hidden.has(trial)).sort((a, b) => a - b);
  return shown.flatMap((trial) => curveOf(session, metric, trial) ?? []);
}

export function curveOf(session: Session, metric: string, trial: number | undefined): Curve | undefined {
  const series = session.curve(metric, trial);
  if (!series || series.length === 0 || trial === undefined) return undefined;
  const { smoothing } = session.choices;
  const { steps, values } = series;
  const y = smoothing > 0 ? smooth(values, smoothing) : values;
  const curve = { trial, x: steps, y, raw: values, steps };
  const axis = axisOf(session, metric);
  const name = metricAlong(axis);
  if (name !== undefined) return alongMetric(curve, series, session.curve(name, trial));
  return axis === 'step' ? curve : { ...curve, x: timesOf(session, trial, series, axis === 'trial') };
}

function timesOf(session: Session, trial: number, { times }: Series, isOfTrial: boolean): Float64Array {
  if (!isOfTrial) return times;
  const begun = session.trials.get(trial)?.started_s ?? times[0] ?? 0;
  return times.map((time) => time - begun);
}

function alongMetric(curve: Curve, series: Series, other: Series | undefined): Curve | undefined {
  if (!other) return undefined;
  const { x, rows } = along(series, other);
  if (rows.length === 0) return undefined;
  const of = (column: Float64Array): Float64Array => picked(column, rows);
  return { trial: curve.trial, x, y: of(curve.y), raw: of(curve.raw), steps: of(curve.steps) };
}

/** The row of a column that does not fall whose value is nearest to `x`; -1 when there is none. O(log rows). */
export function nearest(column: Float64Array, x: number): number {
  let low = 0;
  let high = column.length - 1;
  if (high < 0) return -1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((column[middle] ?? 0) < x) low = middle + 1;
    else high = middle;
  }
  const before = Math.max(low - 1, 0);
  return x - (column[before] ?? 0) < (column[low] ?? 0) - x ? before : low;
}

/** Whether `x` lies on the curve, or less than half of a usual step beside it. */
export function reaches(curve: Curve, x: number): boolean {
  const rows = curve.x.length;
  const first = curve.x[0] ?? 0;
  const last = curve.x[rows - 1] ?? 0;
  const slack = rows > 1 ? (last - first) / (rows - 1) / 2 : 0.5;
  return rows > 0 && x >= first - slack && x <= last + slack;
}

export function extent(curves: Curve[]): [number, number] {
  if (curves.length === 0) return [0, 1];
  const first = Math.min(...curves.map((curve) => curve.x[0] ?? Infinity));
  const last = Math.max(...curves.map((curve) => curve.x.at(-1) ?? -Infinity));
  return [first, last];
}

/** The row of the newest number of a column; -1 when there is none. */
export function lastNumber(column: Float64Array): number {
  let row = column.length - 1;
  while (row >= 0 && !Number.isFinite(column[row])) row--;
  return row;
}

interface Along {
  /** Rises, or stays. */
  x: Float64Array;
  /** The row of the curve that lies at each x. */
  rows: Uint32Array;
}

/**
 * The points of a curve that lie between two reports of the other metric, or at one.
 *
 * What is reported together has the same time, also where each metric counts its own steps; between two reports the
 * other metric is taken to grow evenly. O(rows), where it does not fall.
 */
export function along(curve: Series, other: Series): Along {
  const isTimed = (other.times.at(-1) ?? 0) > (other.times[0] ?? 0);
  const [at, from] = isTimed ? [curve.times, other.times] : [curve.steps, other.steps];
  const values = interpolated(at, from, other.values);
  const rows = Uint32Array.from(values.keys()).filter((row) => Number.isFinite(values[row]));
  if (rows.some((row, i) => i > 0 && (values[row] ?? 0) < (values[rows[i - 1] ?? 0] ?? 0)))
    rows.sort((a, b) => (values[a] ?? 0) - (values[b] ?? 0) || a - b);
  return { x: Float64Array.from(rows, (row) => values[row] ?? NaN), rows };
}

/** What the other metric is at each place; NaN before its first report and after its last. */
function interpolated(at: Float64Array, from: Float64Array, values: Float64Array): Float64Array {
  let left = 0;
  return at.map((place) => {
    while (left + 1 < from.length && (from[left + 1] ?? 0) <= place) left++;
    return between(place, from.subarray(left, left + 2), values.subarray(left, left + 2));
  });
}

/** The value at a place between two reports, or at the first of them. */
function between(place: number, [begin = NaN, end = NaN]: Float64Array, values: Float64Array): number {
  const [low = NaN, high = NaN] = values;
  if (place === begin) return low;
  return place > begin && place < end ? low + ((high - low) * (place - begin)) / (end - begin) : NaN;
}

export function picked(column: Float64Array, rows: Uint32Array): Float64Array {
  return Float64Array.from(rows, (row) => column[row] ?? NaN);
}

/**
 * The exponential moving average with weight `0 <= weight < 1` of the past, freed of the pull towards zero at the
 * start; values that are no numbers stay as they are and change nothing after them. O(values).
 */
export function smooth(values: Float64Array, weight: number): Float64Array {
  const smoothed = new Float64Array(values.length);
  let [mean, share] = [0, 0];
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? NaN;
    if (!Number.isFinite(value)) {
      smoothed[i] = value;
      continue;
    }
    mean = weight * mean + (1 - weight) * value;
    share = weight * share + (1 - weight);
    smoothed[i] = mean / share;
  }
  return smoothed;
}

/** A curve along another metric that its trial has reported, such as `epoch` or `tokens`. */

import type { Series } from './series';

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
    const [begin = NaN, end = NaN] = [from[left], from[left + 1]];
    const [low = NaN, high = NaN] = [values[left], values[left + 1]];
    if (place === begin) return low;
    return place > begin && place < end ? low + ((high - low) * (place - begin)) / (end - begin) : NaN;
  });
}

export function picked(column: Float64Array, rows: Uint32Array): Float64Array {
  return Float64Array.from(rows, (row) => column[row] ?? NaN);
}

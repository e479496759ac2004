/** Curves with steps of their own, brought onto one common x column as uPlot wants them. */

/** What is aligned: x does not fall. */
export interface Curve {
  x: Float64Array;
  y: Float64Array;
}

export type CurveValues = Float64Array | (number | null | undefined)[];
export type Table = [CurveValues, ...CurveValues[]];

const MOST_POINTS = 200_000;
const MOST_CELLS = 600_000;

/**
 * One x column and one column per curve. `undefined` is a step that a curve does not have, `null` a gap: NaN was
 * reported.
 *
 * Few points are joined exactly. Above 200,000 in sight, each curve is reduced to the least and the greatest value
 * per pixel column of `[low, high]`: what is drawn is the same, and the cost is one pass over the points.
 */
export function align(curves: Curve[], low: number, high: number, pixels: number): Table {
  if (curves.length === 0) return [[], []];
  const total = curves.reduce((sum, series) => sum + series.x.length, 0);
  const shared = longest(curves);
  if (total <= MOST_POINTS && curves.every((series) => isPrefix(series.x, shared))) {
    return [shared, ...curves.map((series) => withGaps(series.y))];
  }
  if (total <= MOST_POINTS) {
    const steps = union(curves);
    if (steps.length * curves.length <= MOST_CELLS) {
      return [steps, ...curves.map((series) => spread(series, steps))];
    }
  }
  return envelope(curves, low, high, Math.max(pixels, 2));
}

function longest(curves: Curve[]): Float64Array {
  return curves.reduce(
    (best, series) => (series.x.length > best.length ? series.x : best),
    new Float64Array(0),
  );
}

function isPrefix(steps: Float64Array, of: Float64Array): boolean {
  for (let i = 0; i < steps.length; i++) if (steps[i] !== of[i]) return false;
  return isRising(steps);
}

function isRising(steps: Float64Array): boolean {
  for (let i = 1; i < steps.length; i++) if ((steps[i] ?? 0) <= (steps[i - 1] ?? 0)) return false;
  return true;
}

function withGaps(values: Float64Array): CurveValues {
  return values.every(Number.isFinite) ? values : Array.from(values, orNull);
}

function orNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

function union(curves: Curve[]): Float64Array {
  const steps = new Set<number>();
  for (const series of curves) for (const step of series.x) steps.add(step);
  return Float64Array.from(steps).sort();
}

function spread(series: Curve, steps: Float64Array): CurveValues {
  const place = new Map<number, number | null>();
  series.x.forEach((step, i) => place.set(step, orNull(series.y[i] ?? NaN)));
  return Array.from(steps, (step) => place.get(step));
}

/** Two rows per pixel column: the extremes of a curve there, in the order in which they came. */
function envelope(curves: Curve[], low: number, high: number, pixels: number): Table {
  const width = (high - low) / pixels || 1;
  const x = new Float64Array(2 * pixels);
  for (let i = 0; i < x.length; i++) x[i] = low + (i + 0.5) * (width / 2);
  return [x, ...curves.map((series) => extremes(series, low, width, pixels))];
}

function extremes(series: Curve, low: number, width: number, pixels: number): CurveValues {
  const { x: steps, y: values } = series;
  const column = new Array<number | null | undefined>(2 * pixels).fill(undefined);
  const end = firstAtOrAbove(steps, low + pixels * width);
  let row = firstAtOrAbove(steps, low);
  for (let bucket = 0; bucket < pixels && row <= end; bucket++) {
    const next =
      bucket === pixels - 1
        ? Math.min(end + 1, steps.length)
        : firstAtOrAbove(steps, low + (bucket + 1) * width);
    const [least, greatest] = extremesBetween(values, row, next);
    if (least >= 0) {
      column[2 * bucket] = values[Math.min(least, greatest)];
      column[2 * bucket + 1] = values[Math.max(least, greatest)];
    } else if (row < next) column[2 * bucket] = null;
    row = next;
  }
  return column;
}

/** The rows of the least and the greatest value; -1 twice where there is none. */
function extremesBetween(values: Float64Array, from: number, to: number): [number, number] {
  let [least, greatest] = [-1, -1];
  let [low, high] = [Infinity, -Infinity];
  for (let row = from; row < to; row++) {
    const value = values[row] ?? NaN;
    if (!Number.isFinite(value)) continue;
    if (value < low) [low, least] = [value, row];
    if (value > high) [high, greatest] = [value, row];
  }
  return [least, greatest];
}

/** The row of the first step that is not below `step`, in a column that does not fall. */
export function firstAtOrAbove(steps: Float64Array, step: number): number {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((steps[middle] ?? 0) < step) low = middle + 1;
    else high = middle;
  }
  return low;
}

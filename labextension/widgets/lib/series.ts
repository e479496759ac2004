/** Columns of points, per metric and trial. */

import { firstAtOrAbove } from './align';
import type { Block, Columns } from './frames';

const FIRST_ROWS = 256;

/** Three columns that grow by doubling: adding is O(1) on average, reading takes no copy. */
export class Series {
  length = 0;
  min = Infinity;
  max = -Infinity;
  #steps = new Float64Array(FIRST_ROWS);
  #values = new Float64Array(FIRST_ROWS);
  #times = new Float64Array(FIRST_ROWS);

  /** A series that holds these columns, and takes no more memory than they do. */
  static of(columns: Columns): Series {
    const series = new Series();
    series.#steps = series.#values = series.#times = new Float64Array(0);
    series.append(columns);
    return series;
  }

  get steps(): Float64Array {
    return this.#steps.subarray(0, this.length);
  }

  get values(): Float64Array {
    return this.#values.subarray(0, this.length);
  }

  /** When each point was reported, in seconds since the epoch. */
  get times(): Float64Array {
    return this.#times.subarray(0, this.length);
  }

  append({ steps, values, times }: Columns): void {
    this.#reserve(this.length + steps.length);
    this.#steps.set(steps, this.length);
    this.#values.set(values, this.length);
    this.#times.set(times, this.length);
    this.length += steps.length;
    for (const value of values) this.#widen(value);
  }

  /** Forget the rows from this step on. */
  cut(step: number): void {
    const { values } = this;
    this.length = firstAtOrAbove(this.steps, step);
    [this.min, this.max] = [Infinity, -Infinity];
    for (const value of values.subarray(0, this.length)) this.#widen(value);
  }

  #widen(value: number): void {
    if (value < this.min) this.min = value;
    if (value > this.max) this.max = value;
  }

  #reserve(rows: number): void {
    if (rows <= this.#steps.length) return;
    const size = Math.max(rows, 2 * this.#steps.length);
    const grow = (old: Float64Array): Float64Array => {
      const column = new Float64Array(size);
      column.set(old.subarray(0, this.length));
      return column;
    };
    this.#steps = grow(this.#steps);
    this.#values = grow(this.#values);
    this.#times = grow(this.#times);
  }
}

/** Curves of one metric that take the place of what was known of these trials; one without a curve has none now. */
export interface WholeCurves {
  metric: string;
  trials: number[];
  curves: (Columns & { trial: number })[];
}

export type Curves = Map<number, Series>;

/** The curves of an experiment, each of a trial's metric, its attempts joined. */
export class SeriesStore {
  readonly metrics = new Map<string, Curves>();
  /** As reported, by metric and trial, then by attempt. */
  readonly #attempts = new Map<string, Map<number, Series>>();

  /**
   * Take in the blocks of a frame; rows that are there already are dropped.
   * Gives false when rows are missing before a block: then the whole must be requested.
   */
  take(blocks: Block[], columns: Columns): boolean {
    let taken = 0;
    let complete = true;
    for (const [metric, trial, attempt, first, rows] of blocks) {
      const attempts = this.#attemptsOf(metric, trial);
      const series = attempts.get(attempt) ?? new Series();
      const known = series.length - first;
      if (known >= 0 && known < rows) {
        const fresh = (column: Float64Array): Float64Array => column.subarray(taken + known, taken + rows);
        const { steps, values, times } = columns;
        attempts.set(attempt, series);
        series.append({ steps: fresh(steps), values: fresh(values), times: fresh(times) });
        this.#curves(metric).set(trial, attempts.size === 1 ? series : joined(attempts));
      }
      complete &&= known >= 0;
      taken += rows;
    }
    return complete;
  }

  replace({ metric, trials, curves }: WholeCurves): void {
    const known = this.#curves(metric);
    for (const trial of trials) known.delete(trial);
    for (const curve of curves) known.set(curve.trial, Series.of(curve));
  }

  #curves(metric: string): Curves {
    let curves = this.metrics.get(metric);
    if (!curves) this.metrics.set(metric, (curves = new Map<number, Series>()));
    return curves;
  }

  #attemptsOf(metric: string, trial: number): Map<number, Series> {
    const key = `${trial} ${metric}`;
    let attempts = this.#attempts.get(key);
    if (!attempts) this.#attempts.set(key, (attempts = new Map<number, Series>()));
    return attempts;
  }
}

/** A later attempt replaces the curve from its first step on, as `jupyter_autotrain/store/metrics.py` says. */
function joined(attempts: ReadonlyMap<number, Series>): Series {
  const curve = new Series();
  for (const [, series] of [...attempts].sort(([a], [b]) => a - b)) {
    curve.cut(series.steps[0] ?? Infinity);
    curve.append(series);
  }
  return curve;
}

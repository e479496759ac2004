/** Columns of points, per metric and trial. */

import type { Block } from './frames';

/** Two columns that grow by doubling: adding is O(1) on average, reading takes no copy. */
export class Series {
  length = 0;
  min = Infinity;
  max = -Infinity;
  #steps = new Float64Array(256);
  #values = new Float64Array(256);

  constructor(readonly attempt: number) {}

  get steps(): Float64Array {
    return this.#steps.subarray(0, this.length);
  }

  get values(): Float64Array {
    return this.#values.subarray(0, this.length);
  }

  append(steps: Float64Array, values: Float64Array): void {
    this.#reserve(this.length + steps.length);
    this.#steps.set(steps, this.length);
    this.#values.set(values, this.length);
    this.length += steps.length;
    for (const value of values) {
      if (value < this.min) this.min = value;
      if (value > this.max) this.max = value;
    }
  }

  /** The row whose step lies nearest to `step`; -1 when there is none. Steps do not fall. */
  nearest(step: number): number {
    let low = 0;
    let high = this.length - 1;
    if (high < 0) return -1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#steps[middle] ?? 0) < step) low = middle + 1;
      else high = middle;
    }
    const before = Math.max(low - 1, 0);
    return step - (this.#steps[before] ?? 0) < (this.#steps[low] ?? 0) - step ? before : low;
  }

  /** Whether `step` lies on the curve, or less than half of a usual step beside it. */
  reaches(step: number): boolean {
    const first = this.#steps[0] ?? 0;
    const last = this.#steps[this.length - 1] ?? 0;
    const slack = this.length > 1 ? (last - first) / (this.length - 1) / 2 : 0.5;
    return this.length > 0 && step >= first - slack && step <= last + slack;
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
  }
}

export type Curves = Map<number, Series>;

/** All series of an experiment: of each trial the newest attempt. */
export class SeriesStore {
  readonly metrics = new Map<string, Curves>();

  /**
   * Take in the blocks of a frame; rows that are there already are dropped.
   * Gives false when rows are missing before a block: then the whole must be asked for.
   */
  take(blocks: Block[], steps: Float64Array, values: Float64Array): boolean {
    let taken = 0;
    let complete = true;
    for (const [metric, trial, attempt, first, rows] of blocks) {
      const series = this.#open(metric, trial, attempt);
      const known = series.length - first;
      if (series.attempt === attempt && known >= 0 && known < rows) {
        series.append(
          steps.subarray(taken + known, taken + rows),
          values.subarray(taken + known, taken + rows),
        );
      }
      complete &&= known >= 0;
      taken += rows;
    }
    return complete;
  }

  #open(metric: string, trial: number, attempt: number): Series {
    let curves = this.metrics.get(metric);
    if (!curves) this.metrics.set(metric, (curves = new Map<number, Series>()));
    let series = curves.get(trial);
    if (!series || series.attempt < attempt) curves.set(trial, (series = new Series(attempt)));
    return series;
  }
}

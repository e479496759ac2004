/** The axes of parallel coordinates, side by side over the lines. */

import type { Translator } from '../lib/translator';
import type { Brush, Brushes } from './brushes';
import type { Dimension } from './dimensions';
import type { AxisActions } from './parallel_axis';
import { ParallelAxis } from './parallel_axis';

export class ParallelAxes {
  readonly #axes = new Map<string, ParallelAxis>();

  /** The axes become children of `plot`, before `end`. */
  constructor(
    readonly plot: HTMLElement,
    readonly end: HTMLElement,
    readonly trans: Translator,
    readonly actions: AxisActions,
  ) {}

  /** Put axes where they belong; those that are not named any more go. */
  place(dimensions: readonly Dimension[], x: readonly number[], width: number): void {
    const keys = new Set(dimensions.map(({ key }) => key));
    for (const [key, axis] of this.#axes) {
      if (keys.has(key)) continue;
      axis.root.remove();
      this.#axes.delete(key);
    }
    let next: Element | null = this.end;
    for (const [i, dimension] of [...dimensions.entries()].reverse()) {
      const { root } = this.#axisOf(dimension.key);
      // Moving an element takes its focus away.
      if (root.nextElementSibling !== next) this.plot.insertBefore(root, next);
      root.style.left = `${x[i] ?? 0}px`;
      root.style.setProperty('--at-axis-width', `${width}px`);
      next = root;
    }
  }

  update(dimensions: readonly Dimension[], brushes: Brushes): void {
    for (const dimension of dimensions) {
      const brush: Brush | undefined = brushes.get(dimension.key);
      this.#axisOf(dimension.key).update(dimension, brush);
    }
  }

  #axisOf(key: string): ParallelAxis {
    const known = this.#axes.get(key);
    if (known) return known;
    const axis = new ParallelAxis(key, this.trans, this.actions);
    this.#axes.set(key, axis);
    return axis;
  }
}

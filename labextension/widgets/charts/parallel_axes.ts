/** The axes of parallel coordinates over the lines: their labels, and their brushes by pointer and by keyboard. */

import { h, setAttribute, setText } from '../lib/dom';
import type { Translator } from '../lib/translator';
import type { Brush, Brushes, End } from './brushes';
import { MISSING, brushBetween, ends, isDrag, moved, toggled } from './brushes';
import type { Dimension } from './dimensions';
import { numberAt, textOf } from './dimensions';

export interface AxisActions {
  brush(key: string, brush: Brush | undefined): void;
  setLog(key: string, isLog: boolean): void;
}

const STEPS: Record<string, number> = {
  ArrowUp: 0.01,
  ArrowRight: 0.01,
  ArrowDown: -0.01,
  ArrowLeft: -0.01,
  PageUp: 0.1,
  PageDown: -0.1,
  Home: -1,
  End: 1,
};

/** The axes, side by side. */
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

/** One axis. */
class ParallelAxis {
  readonly #title = h('div', { class: 'at-axis-title' });
  readonly #track = h('div', { class: 'at-axis-track' });
  readonly #shade = h('div', { class: 'at-axis-brush' });
  readonly #low = this.#handle('low');
  readonly #high = this.#handle('high');
  readonly #ticks = h('div');
  readonly #missing = this.#choice(MISSING, '');
  readonly #log: HTMLButtonElement;
  readonly root: HTMLElement;
  #dimension: Dimension | undefined;
  #brush: Brush | undefined;
  #shape = '';
  #from = NaN;

  constructor(
    readonly key: string,
    readonly trans: Translator,
    readonly actions: AxisActions,
  ) {
    const switchLog = (): void => {
      actions.setLog(key, !(this.#dimension?.isLog ?? false));
    };
    this.#log = h('button', { type: 'button', class: 'at-axis-log', onclick: switchLog }, trans.__('log'));
    setText(this.#missing, trans.__('no value'));
    this.#track.append(this.#shade, this.#ticks, this.#low, this.#high);
    this.#missing.classList.add('at-axis-missing');
    const foot = h('div', { class: 'at-axis-foot' }, this.#log);
    this.root = h('div', { class: 'at-axis', role: 'group' }, this.#title, this.#track, this.#missing, foot);
    this.#listen();
  }

  update(dimension: Dimension, brush: Brush | undefined): void {
    const { trans } = this;
    this.#dimension = dimension;
    this.#brush = brush;
    setText(this.#title, dimension.title);
    setAttribute(this.#title, 'title', dimension.title);
    setAttribute(this.root, 'aria-label', trans.__('Axis %1', dimension.title));
    setAttribute(this.#log, 'aria-pressed', String(dimension.isLog));
    setAttribute(this.#log, 'aria-label', trans.__('Logarithmic scale of %1', dimension.title));
    this.#log.hidden = !dimension.allowsLog;
    this.#missing.hidden = !dimension.hasMissing;
    this.#updateTicks(dimension);
    this.#updateBrush(dimension, brush);
  }

  #updateTicks(dimension: Dimension): void {
    const shape = JSON.stringify([dimension.kind, dimension.ticks]);
    if (shape === this.#shape) return;
    this.#shape = shape;
    const focused = this.#ticks.querySelector<HTMLElement>(':focus')?.dataset.label;
    const ticks = dimension.ticks.map(({ position, text }) => {
      const isLabel = dimension.kind === 'labels';
      const tick = isLabel ? this.#choice(text, text) : h('span', { 'aria-hidden': 'true' }, text);
      tick.classList.add('at-axis-tick');
      tick.style.bottom = `${position * 100}%`;
      return tick;
    });
    this.#ticks.replaceChildren(...ticks);
    if (focused !== undefined) ticks.find((tick) => tick.dataset.label === focused)?.focus();
  }

  #updateBrush(dimension: Dimension, brush: Brush | undefined): void {
    const isNumbers = dimension.kind === 'numbers';
    const [low, high] = ends(dimension, brush);
    this.#shade.hidden = !brush?.range;
    this.#shade.style.bottom = `${low * 100}%`;
    this.#shade.style.height = `${(high - low) * 100}%`;
    for (const [handle, at, label] of [
      [this.#low, low, this.trans.__('%1, minimum', dimension.title)],
      [this.#high, high, this.trans.__('%1, maximum', dimension.title)],
    ] as const) {
      handle.hidden = !isNumbers;
      if (!isNumbers) continue;
      handle.style.bottom = `${at * 100}%`;
      const value = numberAt(dimension, at);
      setAttribute(handle, 'aria-label', label);
      setAttribute(handle, 'aria-valuemin', dimension.low);
      setAttribute(handle, 'aria-valuemax', dimension.high);
      setAttribute(handle, 'aria-valuenow', value);
      setAttribute(handle, 'aria-valuetext', textOf(value));
      setAttribute(handle, 'data-brushed', brush?.range !== undefined);
    }
    for (const choice of this.root.querySelectorAll<HTMLElement>('[data-label]')) {
      const isChosen = brush?.labels.has(choice.dataset.label ?? '') ?? false;
      setAttribute(choice, 'aria-pressed', String(isChosen));
    }
  }

  #listen(): void {
    this.#track.addEventListener('pointerdown', (event) => {
      if (event.button !== 0 || (event.target as HTMLElement).closest('[data-label]')) return;
      this.#begin(event);
    });
    this.#track.addEventListener('pointermove', (event) => {
      if (!Number.isNaN(this.#from)) this.#drag(event);
    });
    for (const kind of ['pointerup', 'pointercancel'])
      this.#track.addEventListener(kind, () => {
        this.#from = NaN;
      });
    this.#track.addEventListener('dblclick', () => {
      this.actions.brush(this.key, undefined);
    });
    this.root.addEventListener('keydown', (event) => {
      if (!['Escape', 'Delete', 'Backspace'].includes(event.key)) return;
      event.preventDefault();
      this.actions.brush(this.key, undefined);
    });
  }

  /** A drag from a handle keeps the other end where it is. */
  #begin(event: PointerEvent): void {
    const dimension = this.#dimension;
    if (!dimension) return;
    this.#track.setPointerCapture(event.pointerId);
    const [low, high] = ends(dimension, this.#brush);
    this.#from = this.#positionOf(event);
    if (event.target === this.#low) this.#from = high;
    else if (event.target === this.#high) this.#from = low;
  }

  #drag(event: PointerEvent): void {
    if (!this.#dimension) return;
    const to = this.#positionOf(event);
    if (!isDrag(this.#dimension, this.#from, to)) return;
    this.actions.brush(this.key, brushBetween(this.#dimension, this.#from, to));
  }

  #positionOf({ clientY }: PointerEvent): number {
    const { bottom, height } = this.#track.getBoundingClientRect();
    return Math.min(Math.max((bottom - clientY) / (height || 1), 0), 1);
  }

  #handle(end: End): HTMLElement {
    const onkeydown = (event: Event): void => {
      const by = STEPS[(event as KeyboardEvent).key];
      if (by === undefined || !this.#dimension) return;
      event.preventDefault();
      event.stopPropagation();
      this.actions.brush(this.key, moved(this.#dimension, this.#brush, end, by));
    };
    const role = { role: 'slider', tabindex: 0, 'aria-orientation': 'vertical' };
    return h('div', { class: `at-axis-handle at-axis-${end}`, ...role, onkeydown });
  }

  #choice(label: string, text: string): HTMLElement {
    const onclick = (): void => {
      this.actions.brush(this.key, toggled(this.#brush, label));
    };
    return h('button', { type: 'button', 'data-label': label, 'aria-pressed': 'false', onclick }, text);
  }
}

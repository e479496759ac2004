/** The reading beside the cursor: values of the nearest curves at one step. */

import type uPlot from 'uplot';
import { h, setText } from './dom';
import { number, parameters } from './format';
import type { Session } from './session';

const ROWS = 6;

interface Reading {
  trial: number;
  value: number;
}

export class Tooltip {
  readonly #box = h('div', { class: 'at-tip', hidden: true });

  constructor(
    host: HTMLElement,
    readonly session: Session,
    readonly metric: string,
    readonly colorOf: (trial: number) => string,
  ) {
    host.append(this.#box);
  }

  refresh(plot: uPlot, trials: number[]): void {
    const { left = -1, top = -1 } = plot.cursor;
    if (left < 0 || trials.length === 0) {
      this.#box.hidden = true;
      return;
    }
    const step = plot.posToVal(left, 'x');
    const height = plot.posToVal(top, 'y');
    const near = this.#readings(trials, step)
      .sort((a, b) => distance(a, height) - distance(b, height))
      .slice(0, ROWS);
    this.#box.hidden = near.length === 0;
    if (near.length > 0) this.#fill(near, step, plot, left);
  }

  #readings(trials: number[], step: number): Reading[] {
    return trials.flatMap((trial) => {
      const series = this.session.curve(this.metric, trial);
      if (!series?.reaches(step)) return [];
      return [{ trial, value: series.values[series.nearest(step)] ?? NaN }];
    });
  }

  #fill(near: Reading[], step: number, plot: uPlot, left: number): void {
    const closest = near[0];
    const best = this.session.best()?.number;
    const rows = [...near]
      .sort((a, b) => b.value - a.value)
      .map((reading) => {
        const swatch = h('i', { style: `background:${this.colorOf(reading.trial)}` });
        const name = `trial ${reading.trial}${reading.trial === best ? ' ★' : ''}`;
        const strong = reading.trial === closest?.trial && near.length > 1;
        return h(
          'div',
          { class: strong ? 'at-near' : '' },
          swatch,
          h('span', {}, name),
          h('b', {}, number(reading.value)),
        );
      });
    const exact = closest && this.session.curve(this.metric, closest.trial);
    const row = exact?.nearest(step) ?? 0;
    const head = h('div', { class: 'at-tip-head' }, `step ${number(exact?.steps[row] ?? step)}`);
    const foot = h('div', { class: 'at-tip-foot' });
    setText(foot, closest ? parameters(this.session.trials.get(closest.trial)) : '');
    this.#box.replaceChildren(head, ...rows, ...(foot.textContent ? [foot] : []));
    const from = plot.over.offsetLeft + left;
    const flip = left > plot.over.clientWidth / 2;
    this.#box.style.left = flip ? '' : `${from + 14}px`;
    this.#box.style.right = flip ? `${plot.root.clientWidth - from + 14}px` : '';
  }
}

function distance(reading: Reading, height: number): number {
  return Math.abs(reading.value - height);
}

/** The reading beside the cursor: values of the nearest curves at one step. */

import type uPlot from 'uplot';
import { h, setText } from './dom';
import type { Axis } from './choices';
import { metricAlong } from './choices';
import type { Curve } from './curves';
import { axisOf, nearest, reaches } from './curves';
import { duration, number, parameters } from './format';
import type { Session } from './session';
import { colorOf } from './theme';

const ROWS = 6;

interface Reading {
  curve: Curve;
  row: number;
  value: number;
}

export class Tooltip {
  readonly #box = h('div', { class: 'at-tip', hidden: true });

  constructor(
    host: HTMLElement,
    readonly session: Session,
    readonly metric: string,
  ) {
    host.append(this.#box);
  }

  /** Tell what lies under the cursor; gives the closest trial. */
  refresh(plot: uPlot, curves: Curve[]): number | undefined {
    const { left = -1, top = -1 } = plot.cursor;
    if (left < 0 || curves.length === 0) {
      this.#box.hidden = true;
      return undefined;
    }
    const x = plot.posToVal(left, 'x');
    const height = plot.posToVal(top, 'y');
    const far = ({ value }: Reading): number => (Number.isNaN(value) ? Infinity : Math.abs(value - height));
    const near = readings(curves, x)
      .sort((a, b) => far(a) - far(b))
      .slice(0, ROWS);
    const [closest] = near;
    this.#box.hidden = closest === undefined;
    if (closest) this.#fill(near, closest, plot, left);
    return closest?.curve.trial;
  }

  #fill(near: Reading[], closest: Reading, plot: uPlot, left: number): void {
    const rows = [...near].sort((a, b) => b.value - a.value).map((reading) => this.#row(reading, closest));
    const head = h('div', { class: 'at-tip-head' }, this.#where(closest));
    const foot = h('div', { class: 'at-tip-foot' });
    setText(foot, parameters(this.session.trials.get(closest.curve.trial)));
    this.#box.replaceChildren(head, ...rows, ...(foot.textContent ? [foot] : []));
    const from = plot.over.offsetLeft + left;
    const flip = left > plot.over.clientWidth / 2;
    this.#box.style.left = flip ? '' : `${from + 14}px`;
    this.#box.style.right = flip ? `${plot.root.clientWidth - from + 14}px` : '';
  }

  #row(reading: Reading, closest: Reading): HTMLElement {
    const { trial, raw } = reading.curve;
    const best = trial === this.session.best()?.number;
    const reported = raw[reading.row] ?? NaN;
    const smooth = this.session.choices.smoothing > 0;
    return h(
      'div',
      { class: reading === closest ? 'at-near' : '' },
      h('i', { style: `background:${colorOf(trial)}` }),
      h('span', {}, `${this.session.names.nameOf(trial)}${best ? ' ★' : ''}`),
      h('b', {}, number(reading.value)),
      ...(smooth ? [h('small', {}, this.session.trans.__('reported %1', number(reported)))] : []),
    );
  }

  #where({ curve, row }: Reading): string {
    const { session } = this;
    const step = session.trans.__('step %1', number(curve.steps[row]));
    const axis = axisOf(session, this.metric);
    if (axis === 'step') return step;
    const x = xText(axis, curve.x[row] ?? NaN);
    return session.names.hasSteps ? `${x} · ${step}` : x;
  }
}

function xText(axis: Axis, x: number): string {
  const metric = metricAlong(axis);
  if (metric !== undefined) return `${metric} ${number(x)}`;
  return axis === 'trial' ? duration(x) : new Date(x * 1000).toLocaleTimeString();
}

function readings(curves: Curve[], x: number): Reading[] {
  return curves
    .filter((curve) => reaches(curve, x))
    .map((curve) => {
      const row = nearest(curve.x, x);
      return { curve, row, value: curve.y[row] ?? NaN };
    });
}

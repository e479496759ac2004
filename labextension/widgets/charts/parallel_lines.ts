/** The lines of parallel coordinates on a canvas, shaded from the worst to the best, and which is under the pointer. */

import { h, setText } from '../lib/dom';
import { number, parameters } from '../lib/format';
import type { Trial } from '../lib/frames';
import type { Session } from '../lib/session';
import type { Translator } from '../lib/translator';
import { OBJECTIVE } from './axis_choices';
import type { Dimension } from './dimensions';

/** Where the axes are, in CSS pixels. */
export interface Frame {
  width: number;
  height: number;
  /** Of the axes' upper and lower end. */
  top: number;
  bottom: number;
  /** Where trials without a value pass an axis, below its end. */
  missing: number;
  /** Of each axis. */
  x: readonly number[];
}

const AT_ONCE = 250; // lines of one path: with more of them, drawing gets slower by the square
/** From the worst to the best; readable on white and on black. */
const SHADES: readonly string[] = [
  '#3b7dd8',
  '#2f93b8',
  '#1b9e77',
  '#7a9a2e',
  '#b8860b',
  '#e08214',
  '#d9622b',
];
const PLAIN = 0; // the shade of lines without an objective value
const REACH_PX = 12;

export class ParallelLines {
  #y: Float32Array[] = [];
  #frame: Frame = { width: 0, height: 0, top: 0, bottom: 0, missing: 0, x: [] };

  constructor(readonly canvas: HTMLCanvasElement) {}

  /** Lay the trials out anew. O(trials x axes). */
  place(dimensions: readonly Dimension[], frame: Frame): void {
    this.#frame = frame;
    const span = frame.bottom - frame.top;
    this.#y = dimensions.map(({ positions }) =>
      positions.map((position) => (Number.isNaN(position) ? frame.missing : frame.bottom - position * span)),
    );
  }

  /** Draw lines in layers, the last on top. */
  draw(layers: readonly LineLayer[]): void {
    const context = prepared(this.canvas, this.#frame);
    if (!context) return;
    for (const { trials, color, alpha, width } of layers) {
      context.strokeStyle = color;
      context.globalAlpha = alpha;
      context.lineWidth = width;
      for (let from = 0; from < trials.length; from += AT_ONCE) {
        context.beginPath();
        for (const trial of trials.slice(from, from + AT_ONCE)) this.#trace(context, trial);
        context.stroke();
      }
    }
  }

  /** The candidate whose line passes nearest to a point; undefined where none is near. O(candidates). */
  nearest(candidates: readonly number[], x: number, y: number): number | undefined {
    const axes = this.#frame.x;
    const right = Math.max(
      axes.findIndex((at) => at >= x),
      1,
    );
    const [from, to] = [axes[right - 1], axes[right]];
    const [left, next] = [this.#y[right - 1], this.#y[right]];
    if (from === undefined || to === undefined || !left || !next) return undefined;
    const share = Math.min(Math.max((x - from) / (to - from), 0), 1);
    let best: number | undefined;
    let reach = REACH_PX;
    for (const trial of candidates) {
      const at = (left[trial] ?? 0) * (1 - share) + (next[trial] ?? 0) * share;
      const far = Math.abs(at - y);
      if (far < reach) [best, reach] = [trial, far];
    }
    return best;
  }

  #trace(context: CanvasRenderingContext2D, trial: number): void {
    this.#y.forEach((column, axis) => {
      const [x, y] = [this.#frame.x[axis] ?? 0, column[trial] ?? 0];
      if (axis === 0) context.moveTo(x, y);
      else context.lineTo(x, y);
    });
  }
}

export interface LineLayer {
  /** By their place among the trials. */
  trials: readonly number[];
  color: string;
  alpha: number;
  width: number;
}

/** The canvas in device pixels, empty. */
function prepared(canvas: HTMLCanvasElement, { width, height }: Frame): CanvasRenderingContext2D | null {
  const scale = devicePixelRatio;
  const [across, down] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== across) canvas.width = across;
  if (canvas.height !== down) canvas.height = down;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  context?.setTransform(scale, 0, 0, scale, 0, 0);
  context?.clearRect(0, 0, width, height);
  if (context) context.lineJoin = 'bevel';
  return context;
}

/** One layer per shade, the best on top. O(places). */
export function shadeLayers(
  session: Session,
  dimensions: readonly Dimension[],
  places: readonly number[],
): LineLayer[] {
  const objective = dimensions.find(({ key }) => key === OBJECTIVE);
  const isRising = objective !== undefined && risesToBest(session, objective);
  const trials: number[][] = SHADES.map(() => []);
  for (const place of places) trials[shadeOf(objective?.positions[place] ?? NaN, isRising)]?.push(place);
  const alpha = places.length > 1000 ? 0.25 : places.length > 100 ? 0.5 : 0.85;
  // Without a GPU, lines of more than a device's pixel take twice as long.
  const width = places.length > 1000 ? 1 / devicePixelRatio : 1.25;
  return SHADES.map((color, i) => ({ trials: trials[i] ?? [], color, alpha, width }));
}

/** The legend: the shades between the worst and the best value. */
export function fillLegend(root: HTMLElement, session: Session, dimensions: readonly Dimension[]): void {
  const objective = dimensions.find(({ key }) => key === OBJECTIVE);
  root.hidden = objective?.kind !== 'numbers';
  if (root.hidden || !objective) return;
  const [low, high] = [number(objective.low), number(objective.high)];
  const isRising = risesToBest(session, objective);
  const shown = [low, high, isRising].join();
  if (root.dataset.shown === shown) return;
  root.dataset.shown = shown;
  const bar = h('i', { style: `background:linear-gradient(90deg,${SHADES.join()})` });
  const { trans } = session;
  const [worst, best] = isRising ? [low, high] : [high, low];
  root.replaceChildren(`${trans.__('worst %1', worst)} `, bar, ` ${trans.__('%1 best', best)}`);
}

/** What is read beside a line. */
export function fillTip(root: HTMLElement, trial: Trial, trans: Translator): void {
  const value = trial.value === null ? '' : `  ${number(trial.value)}`;
  const head = h('div', { class: 'at-tip-head' }, `${trans.__('trial %1', trial.number)}${value}`);
  const foot = h('div', { class: 'at-tip-foot' });
  setText(foot, parameters(trial));
  root.replaceChildren(head, foot);
}

/** Whether greater values are better: the best trial has the greatest. */
function risesToBest(session: Session, { low, high }: Dimension): boolean {
  const best = session.best()?.value ?? high;
  return best - low >= high - best;
}

function shadeOf(position: number, isRising: boolean): number {
  if (Number.isNaN(position)) return PLAIN;
  const share = isRising ? position : 1 - position;
  return Math.round(Math.min(Math.max(share, 0), 1) * (SHADES.length - 1));
}

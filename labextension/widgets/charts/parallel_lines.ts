/** The lines of parallel coordinates on a canvas, and which of them is under the pointer. */

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
export const SHADES: readonly string[] = [
  '#3b7dd8',
  '#2f93b8',
  '#1b9e77',
  '#7a9a2e',
  '#b8860b',
  '#e08214',
  '#d9622b',
];
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

/** What lies over what in a chart, and how strongly each curve is drawn. */

import type uPlot from 'uplot';
import type { CurveValues } from './align';
import type { Curve } from './curves';
import type { Session } from './session';
import { colorOf, dashOf } from './theme';

export interface Layer {
  trial: number;
  kind: 'raw' | 'line' | 'top';
  column: CurveValues;
}

export interface Stroke {
  color: string;
  width: number;
  alpha: number;
  dash: number[];
}

/** A layer that draws nothing. */
export const EMPTY: Layer = { trial: 0, kind: 'top', column: [] };

/** So many curves on top are kept ready: pointing at one then adds nothing to the plot. */
const READY = 4;

/**
 * Curves as reported lie under the smooth ones, and highlighted ones lie on top of all.
 *
 * @param columns One per curve, then, if the curves are smooth, one per curve as reported.
 */
export function layersOf(session: Session, curves: Curve[], columns: CurveValues[]): Layer[] {
  const layer = (kind: Layer['kind'], offset: number): Layer[] =>
    curves.map(({ trial }, i) => ({ trial, kind, column: columns[offset + i] ?? [] }));
  const raw = columns.length > curves.length ? layer('raw', curves.length) : [];
  const lines = layer('line', 0);
  const top = emphasised(session).flatMap((trial) => lines.filter((line) => line.trial === trial));
  const layers = [...raw, ...lines, ...top.map((line): Layer => ({ ...line, kind: 'top' }))];
  for (let i = top.length; i < READY; i++) layers.push(EMPTY);
  return layers;
}

/** The trials that stand out, the strongest last. */
function emphasised(session: Session): number[] {
  const { pinned, trial, hover } = session.choices;
  const wanted = [...pinned, trial, session.best()?.number, hover];
  const strongest = new Set(wanted.filter((number) => number !== undefined).reverse());
  return [...strongest].reverse();
}

export function strokeOf(session: Session, layer: Layer, curves: number): Stroke {
  const { trial, kind } = layer;
  const { hover } = session.choices;
  const look = { color: colorOf(trial), dash: dashOf(trial) };
  const away = hover !== undefined && hover !== trial ? 0.45 : 1;
  if (kind === 'raw') return { ...look, dash: [], width: 1, alpha: 0.22 * away };
  if (kind === 'line') return { ...look, width: 1.25, alpha: crowd(curves) * away };
  const strong = trial === hover || trial === session.best()?.number;
  return { ...look, width: strong ? 2.5 : 2, alpha: hover !== undefined && hover !== trial ? 0.7 : 1 };
}

function crowd(curves: number): number {
  if (curves <= 8) return 0.95;
  return curves <= 24 ? 0.6 : 0.35;
}

/**
 * The rows of a column that hold a number between gaps: no line is drawn there, so the points themselves must be.
 * A null is a gap; an undefined is a row that the curve does not have, which a line passes over.
 */
export function isolated(plot: uPlot, index: number): number[] | null {
  const column = plot.data[index] ?? [];
  const found: number[] = [];
  let lonely = -1;
  let before = false;
  for (let row = 0; row < column.length; row++) {
    const value = column[row];
    if (value === undefined) continue;
    const here = typeof value === 'number';
    if (lonely >= 0 && !here) found.push(lonely);
    lonely = here && !before ? row : -1;
    before = here;
  }
  if (lonely >= 0) found.push(lonely);
  return found.length > 0 ? found : null;
}

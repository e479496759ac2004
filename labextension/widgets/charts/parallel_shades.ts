/** Lines shaded by the objective, from the worst to the best, and what tells how. */

import { h, setText } from '../lib/dom';
import { number, parameters } from '../lib/format';
import type { Trial } from '../lib/frames';
import type { Session } from '../lib/session';
import type { Translator } from '../lib/translator';
import type { Dimension } from './dimensions';
import { OBJECTIVE } from './parallel_columns';
import type { LineLayer } from './parallel_lines';
import { SHADES } from './parallel_lines';

const PLAIN = 0; // the shade of lines without an objective value

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

/** A button that gives the charts that are shown to the page around: pressed, or dragged. */

import { h } from './dom';
import type { Translator } from './translator';

export const INSERT_CHART = 'autotrain:insert-chart';
export const DRAG_CHART = 'autotrain:drag-chart';

/** The detail of both events. */
export interface GivenChart {
  /** Of the experiment; "" where the chart shows several. */
  id: string;
  /** As the title of the picture says. */
  experiment: string;
  metric: string;
  picture: HTMLCanvasElement;
  /** Where the pointer is. */
  x: number;
  y: number;
}

const DRAG_PX = 5;

/** Style shows it only in a page that listens; `chart` draws the picture when it is wanted. */
export function giveChart(trans: Translator, chart: () => Omit<GivenChart, 'x' | 'y'>): HTMLButtonElement {
  const title = trans.__('Insert the picture into the notebook, or drag it there');
  const button = h('button', { type: 'button', class: 'at-button at-give', title }, trans.__('To notebook'));
  let from: PointerEvent | undefined;
  const give = (kind: string, { clientX: x, clientY: y }: MouseEvent): void => {
    button.dispatchEvent(new CustomEvent<GivenChart>(kind, { bubbles: true, detail: { ...chart(), x, y } }));
  };
  button.addEventListener('click', (event) => {
    give(INSERT_CHART, event);
  });
  const move = (event: PointerEvent): void => {
    if (!from || Math.hypot(event.clientX - from.clientX, event.clientY - from.clientY) < DRAG_PX) return;
    end();
    give(DRAG_CHART, event);
  };
  const end = (): void => {
    from = undefined;
    document.removeEventListener('pointermove', move);
    document.removeEventListener('pointerup', end);
  };
  button.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    from = event;
    document.addEventListener('pointermove', move);
    document.addEventListener('pointerup', end);
  });
  return button;
}

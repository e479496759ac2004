/** A chart by keyboard: arrows move the reading line, + and - zoom around it, 0 and Escape show all. */

import type uPlot from 'uplot';

/** A chart whose x axis can show a part of its extent. */
interface Zoomable {
  extent(): [number, number];
  setZoom(zoom: [number, number] | undefined): void;
}

/** Do what a key means; false when it means nothing here. */
export function chartKey(chart: Zoomable, plot: uPlot, key: string): boolean {
  const actions: Record<string, () => void> = {
    ArrowLeft: () => {
      move(plot, -1);
    },
    ArrowRight: () => {
      move(plot, 1);
    },
    '+': () => {
      zoomBy(chart, plot, 0.5);
    },
    '-': () => {
      zoomBy(chart, plot, 2);
    },
    '0': () => {
      chart.setZoom(undefined);
    },
  };
  const names: Record<string, string> = { '=': '+', Escape: '0' };
  const action = actions[names[key] ?? key];
  action?.();
  return action !== undefined;
}

function move(plot: uPlot, by: number): void {
  const steps = plot.data[0];
  const [first, last] = plot.series[0]?.idxs ?? [0, steps.length - 1];
  const at = Math.min(Math.max((plot.cursor.idx ?? (by > 0 ? first - 1 : last + 1)) + by, first), last);
  plot.setCursor({ left: plot.valToPos(steps[at] ?? 0, 'x'), top: plot.over.clientHeight / 2 });
}

function zoomBy(chart: Zoomable, plot: uPlot, factor: number): void {
  const { min = 0, max = 1 } = plot.scales.x ?? {};
  const left = plot.cursor.left ?? -1;
  const center = left >= 0 ? plot.posToVal(left, 'x') : (min + max) / 2;
  const [first, last] = chart.extent();
  const low = Math.max(center - (center - min) * factor, first);
  const high = Math.min(center + (max - center) * factor, last);
  chart.setZoom(low <= first && high >= last ? undefined : [low, high]);
}

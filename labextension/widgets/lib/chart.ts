/** The curves of one metric: all trials, the best and the chosen one on top. */

import uPlot from 'uplot';
import { align } from './align';
import type { Column } from './align';
import { number } from './format';
import type { Series } from './series';
import type { Session } from './session';
import { ACCENT, FEW, SECOND, colorOf, cssColor, dashOf } from './theme';
import { Tooltip } from './tooltip';

export class Chart {
  readonly root: HTMLDivElement;
  zoom: [number, number] | undefined;
  #plot: uPlot | undefined;
  #trials: number[] = [];
  #drawn = '';
  #logarithmic = false;
  readonly #tooltip: Tooltip;
  readonly #resize: ResizeObserver;

  constructor(
    readonly session: Session,
    readonly metric: string,
    readonly height: number,
    readonly zoomed: () => void,
  ) {
    this.root = document.createElement('div');
    this.root.className = 'at-chart';
    this.root.tabIndex = 0;
    this.root.style.height = `${height}px`;
    this.root.addEventListener('keydown', this.#key);
    this.#tooltip = new Tooltip(this.root, session, metric, (trial) => this.colorOf(trial));
    this.#resize = new ResizeObserver(() => {
      this.#plot?.setSize(this.#size());
      this.update();
    });
    this.#resize.observe(this.root);
  }

  get trials(): number[] {
    return this.#trials;
  }

  colorOf(trial: number): string {
    if (trial === this.session.best()?.number && this.#trials.length > FEW) return ACCENT;
    if (this.#trials.length <= FEW) return colorOf(this.#trials.indexOf(trial));
    if (trial === this.session.choices.trial) return SECOND;
    return this.session.trials.get(trial)?.state === 'RUNNING' ? this.#ink() : this.#muted();
  }

  /** Draw what has changed since the last time; cheap when nothing has. */
  update(): void {
    const width = this.root.clientWidth;
    const { log, trial } = this.session.choices;
    const state = [this.session.version, width, log, trial, this.zoom].join();
    if (width === 0 || state === this.#drawn) return;
    this.#drawn = state;
    const curves = [...(this.session.series.metrics.get(this.metric) ?? [])].sort(([a], [b]) => a - b);
    this.#trials = curves.map(([number]) => number);
    const { columns, log: positive } = this.#columns(curves, width);
    if (this.#plot && this.#logarithmic !== positive) this.#destroyPlot();
    this.#logarithmic = positive;
    this.#plot ??= new uPlot(this.#options(positive), [[], [], []], this.root);
    this.#show(this.#plot, columns);
  }

  redraw(): void {
    this.#plot?.redraw(false, true);
  }

  destroy(): void {
    this.#resize.disconnect();
    this.#destroyPlot();
    this.root.remove();
  }

  setZoom(zoom: [number, number] | undefined): void {
    this.zoom = zoom;
    this.update();
    this.zoomed();
  }

  #show(plot: uPlot, columns: uPlot.AlignedData): void {
    const wanted = columns.length;
    // The last two series are the chosen and the best trial, drawn a second time on top of all.
    while (plot.series.length < wanted)
      plot.addSeries(this.#thin(plot.series.length - 3), plot.series.length - 2);
    while (plot.series.length > wanted) plot.delSeries(1);
    this.#style(plot);
    plot.setData(columns, !this.zoom);
    if (this.zoom) plot.setScale('x', { min: this.zoom[0], max: this.zoom[1] });
    this.#tooltip.refresh(plot, this.#trials);
  }

  #columns(curves: [number, Series][], width: number): { columns: uPlot.AlignedData; log: boolean } {
    const [low, high] = this.zoom ?? this.#extent(curves.map(([, series]) => series));
    const [steps, ...values] = align(
      curves.map(([, series]) => series),
      low,
      high,
      width,
    );
    const log = this.session.choices.log && curves.some(([, series]) => series.max > 0);
    const shown = log ? values.map(positiveOnly) : values;
    const of = (trial: number | undefined): Column => shown[this.#trials.indexOf(trial ?? -1)] ?? [];
    const drawn = curves.length > 0 ? shown : [];
    const columns = [steps, ...drawn, of(this.session.choices.trial), of(this.session.best()?.number)];
    return { columns: columns as uPlot.AlignedData, log };
  }

  #extent(curves: Series[]): [number, number] {
    const first = Math.min(...curves.map((series) => series.steps[0] ?? 0));
    const last = Math.max(...curves.map((series) => series.steps.at(-1) ?? 0));
    return [first, last];
  }

  #style(plot: uPlot): void {
    const few = this.#trials.length <= FEW;
    plot.series.forEach((series, i) => {
      if (i > 0 && i < plot.series.length - 2) series.dash = few ? dashOf(i - 1) : [];
    });
  }

  #thin(index: number): uPlot.Series {
    const color = (_: uPlot, i: number): string => this.colorOf(this.#trials[i - 1] ?? 0);
    return { stroke: color, width: 1.25, alpha: 0.9, dash: dashOf(index), points: { show: this.#lonely } };
  }

  #thick(trial: () => number | undefined, width: number): uPlot.Series {
    const color = (): string => this.colorOf(trial() ?? 0);
    return { stroke: color, width, points: { show: this.#lonely } };
  }

  /** A curve of one point has no line: show the point itself. */
  readonly #lonely = (plot: uPlot, index: number): boolean => {
    const column = plot.data[index] ?? [];
    let seen = 0;
    for (let i = 0; i < column.length && seen < 2; i++) if (typeof column[i] === 'number') seen++;
    return seen === 1;
  };

  #options(log: boolean): uPlot.Options {
    const ink = (): string => this.#ink();
    const line = (): string => cssColor(this.root, '--at-line', '#e3e3e3');
    const font = `11px ${cssColor(this.root, '--at-font', 'system-ui, sans-serif')}`;
    const axis: uPlot.Axis = {
      stroke: ink,
      font,
      grid: { stroke: line, width: 1 },
      ticks: { show: false },
      gap: 6,
    };
    return {
      ...this.#size(),
      padding: [10, 12, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: false, range: xRange },
        // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- uPlot's enum has no value at run time
        y: { distr: log ? 3 : 1 },
      },
      axes: [
        { ...axis, size: 26, grid: { show: false }, incrs: WHOLE_STEPS, values: xLabels },
        {
          ...axis,
          size: 52,
          grid: { stroke: line, width: 1, ...(log ? { filter: powersOfTen } : {}) },
          values: (_, splits) => splits.map((value) => yLabel(value as number | null)),
        },
      ],
      series: [
        {},
        this.#thick(() => this.session.choices.trial, 2),
        this.#thick(() => this.session.best()?.number, 2.5),
      ],
      cursor: {
        points: { show: false },
        y: false,
        drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => this.#reset },
      },
      hooks: {
        setCursor: [
          (plot) => {
            this.#tooltip.refresh(plot, this.#trials);
          },
        ],
        setSelect: [this.#select],
      },
    };
  }

  readonly #reset = (): null => {
    this.setZoom(undefined);
    return null;
  };

  readonly #select = (plot: uPlot): void => {
    const { left, width } = plot.select;
    if (width < 4) return;
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.setZoom([plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')]);
  };

  /** Arrows move the reading line, + and - zoom around it, 0 and Escape show all. */
  readonly #key = (event: KeyboardEvent): void => {
    const plot = this.#plot;
    if (!plot || event.target !== this.root) return;
    if (event.key === 'ArrowLeft' || event.key === 'ArrowRight')
      this.#move(plot, event.key === 'ArrowLeft' ? -1 : 1);
    else if (event.key === '+' || event.key === '=') this.#zoomBy(plot, 0.5);
    else if (event.key === '-') this.#zoomBy(plot, 2);
    else if (event.key === '0' || event.key === 'Escape') this.setZoom(undefined);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  #move(plot: uPlot, by: number): void {
    const steps = plot.data[0];
    const [first, last] = plot.series[0]?.idxs ?? [0, steps.length - 1];
    const at = Math.min(Math.max((plot.cursor.idx ?? (by > 0 ? first - 1 : last + 1)) + by, first), last);
    plot.setCursor({ left: plot.valToPos(steps[at] ?? 0, 'x'), top: plot.over.clientHeight / 2 });
  }

  #zoomBy(plot: uPlot, factor: number): void {
    const { min = 0, max = 1 } = plot.scales.x ?? {};
    const left = plot.cursor.left ?? -1;
    const center = left >= 0 ? plot.posToVal(left, 'x') : (min + max) / 2;
    const [first, last] = this.#extent([...(this.session.series.metrics.get(this.metric)?.values() ?? [])]);
    const low = Math.max(center - (center - min) * factor, first);
    const high = Math.min(center + (max - center) * factor, last);
    this.setZoom(low <= first && high >= last ? undefined : [low, high]);
  }

  #size(): { width: number; height: number } {
    return { width: Math.max(this.root.clientWidth, 80), height: this.height };
  }

  #ink(): string {
    return cssColor(this.root, '--at-ink-2', '#666');
  }

  #muted(): string {
    return cssColor(this.root, '--at-muted', '#b9bec6');
  }

  #destroyPlot(): void {
    this.#plot?.destroy();
    this.#plot = undefined;
    this.#drawn = '';
  }
}

const WHOLE_STEPS = [1, 2, 5]
  .flatMap((unit) => Array.from({ length: 12 }, (_, power) => unit * 10 ** power))
  .sort((a, b) => a - b);

function xRange(_: uPlot, min: number | null, max: number | null): [number, number] {
  if (min === null || max === null) return [0, 1];
  return min === max ? [min - 1, max + 1] : [min, max];
}

/** The first label says what is counted. */
function xLabels(_: uPlot, splits: number[]): string[] {
  return splits.map((value, i) => (i === 0 ? `step ${number(value)}` : number(value)));
}

function powersOfTen(_: uPlot, splits: number[]): (number | null)[] {
  return splits.map((value) => (Number.isInteger(Math.log10(value)) ? value : null));
}

function yLabel(value: number | null): string {
  return value === null ? '' : number(value);
}

function positiveOnly(column: Column): Column {
  return Array.from(column, (value) => (typeof value === 'number' && value <= 0 ? null : value));
}

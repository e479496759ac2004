/** The curves of one metric: all trials, and on top the highlighted ones. */

import uPlot from 'uplot';
import { align } from './align';
import type { CurveValues, Table } from './align';
import { chartKey } from './chartkeys';
import type { Curve } from './curves';
import { axisOf, curvesOf, extent, lastNumber } from './curves';
import type { Layer, Stroke } from './layers';
import { EMPTY, isolated, layersOf, strokeOf } from './layers';
import { xAxis, xRange, yAxis, yRange } from './scales';
import type { Session } from './session';
import { colorOf, cssColor } from './theme';
import { Tooltip } from './tooltip';

export class Chart {
  readonly root: HTMLDivElement;
  zoom: [number, number] | undefined;
  #plot: uPlot | undefined;
  #curves: Curve[] = [];
  #table: Table = [[]];
  #layers: Layer[] = [];
  #drawn = '';
  #style = '';
  #kind = '';
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
    this.root.addEventListener('mouseleave', () => {
      session.point(undefined);
    });
    this.#tooltip = new Tooltip(this.root, session, metric);
    this.#resize = new ResizeObserver(() => {
      this.#plot?.setSize(this.#size());
      this.update();
    });
    this.#resize.observe(this.root);
  }

  get curves(): Curve[] {
    return this.#curves;
  }

  get canvas(): HTMLCanvasElement | undefined {
    return this.#plot?.ctx.canvas;
  }

  /** What the y axis spans now. */
  get span(): [number, number] | undefined {
    const { min, max } = this.#plot?.scales.y ?? {};
    return min === undefined || max === undefined ? undefined : [min, max];
  }

  /** Draw what has changed since the last time; cheap when nothing has. */
  update(): void {
    const width = this.root.clientWidth;
    if (width === 0) return;
    const { log, axis, smoothing, hidden, trial, hover, pinned } = this.session.choices;
    const limits = this.session.limits(this.metric);
    const drawn = [
      this.session.version,
      width,
      log,
      axis,
      smoothing,
      ...hidden,
      'z',
      this.zoom,
      limits,
    ].join();
    const style = [trial, hover, this.session.best()?.number, ...pinned].join();
    if (drawn === this.#drawn && style === this.#style) return;
    if (drawn !== this.#drawn) this.#read(width);
    this.#show();
    this.#drawn = drawn;
    this.#style = style;
  }

  redraw(): void {
    this.#plot?.redraw(false, true);
  }

  destroy(): void {
    this.#resize.disconnect();
    this.#plot?.destroy();
    this.root.remove();
  }

  setZoom(zoom: [number, number] | undefined): void {
    this.zoom = zoom;
    this.update();
    this.zoomed();
  }

  extent(): [number, number] {
    return extent(this.#curves);
  }

  #read(width: number): void {
    this.#curves = curvesOf(this.session, this.metric);
    const [low, high] = this.zoom ?? this.extent();
    const both = this.#curves.map(({ x, y }) => ({ x, y }));
    if (this.session.choices.smoothing > 0) both.push(...this.#curves.map(({ x, raw }) => ({ x, y: raw })));
    const [x, ...columns] = align(both, low, high, width);
    this.#table = [x, ...(this.#isLog() ? columns.map(positiveOnly) : columns)];
  }

  #isLog(): boolean {
    return this.session.choices.log && this.#curves.some(({ raw }) => raw.some((value) => value > 0));
  }

  #show(): void {
    const kind = `${this.#isLog()} ${axisOf(this.session, this.metric)}`;
    if (kind !== this.#kind) {
      this.#plot?.destroy();
      this.#plot = undefined;
      this.#kind = kind;
    }
    const [x, ...columns] = this.#table;
    this.#layers = layersOf(this.session, this.#curves, columns);
    const plot = (this.#plot ??= new uPlot(this.#options(), [[]], this.root));
    while (plot.series.length <= this.#layers.length) plot.addSeries(this.#series());
    // uPlot cannot take a series out again where the cursor has no points: those left over stay, empty.
    while (this.#layers.length < plot.series.length - 1) this.#layers.push(EMPTY);
    plot.series.forEach((series, i) => {
      if (i > 0) Object.assign(series, this.#stroke(i));
    });
    plot.setData([x, ...this.#layers.map(({ column }) => column)] as uPlot.AlignedData);
    this.#tooltip.refresh(plot, this.#curves);
  }

  /** What uPlot reads again with each drawing; it gets the colour by a function. */
  #stroke(index: number): Pick<Stroke, 'width' | 'alpha' | 'dash'> {
    const layer = this.#layers[index - 1];
    if (!layer) return { width: 1, alpha: 1, dash: [] };
    const { width, alpha, dash } = strokeOf(this.session, layer, this.#curves.length);
    return { width, alpha, dash };
  }

  #series(): uPlot.Series {
    const color = (_: uPlot, i: number): string => colorOf(this.#layers[i - 1]?.trial ?? 1);
    return {
      stroke: color,
      points: { show: false, filter: isolated, size: 5, width: 1, stroke: color, fill: color },
    };
  }

  #options(): uPlot.Options {
    const ink = (): string => cssColor(this.root, '--at-ink-2', '#666');
    const line = (): string => cssColor(this.root, '--at-grid', '#e3e3e3');
    const font = `11px ${cssColor(this.root, '--at-font', 'system-ui, sans-serif')}`;
    const grid = { stroke: line, width: 1 };
    const common: uPlot.Axis = { stroke: ink, font, ticks: { show: false }, gap: 6 };
    const axis = axisOf(this.session, this.metric);
    const log = this.#isLog();
    return {
      ...this.#size(),
      padding: [10, 12, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: axis === 'clock', range: () => xRange(this.extent(), this.zoom) },
        y: {
          // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- uPlot's enum has no value at run time
          distr: log ? 3 : 1,
          range: (_, low, high) => yRange(low, high, log, this.session.limits(this.metric)),
        },
      },
      axes: [
        { ...common, size: axis === 'clock' ? 40 : 26, grid: { show: false }, ...xAxis(axis, this.session.trans) },
        { ...common, size: 52, grid, ...yAxis(log) },
      ],
      series: [{}],
      cursor: {
        points: { show: false },
        y: false,
        drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => this.#reset },
      },
      hooks: { setCursor: [this.#point], setSelect: [this.#select], draw: [this.#star] },
    };
  }

  readonly #point = (plot: uPlot): void => {
    const closest = this.#tooltip.refresh(plot, this.#curves);
    if (this.root.matches(':hover')) this.session.point(closest);
  };

  /** The best trial is marked without colour. */
  readonly #star = (plot: uPlot): void => {
    const best = this.#curves.find(({ trial }) => trial === this.session.best()?.number);
    const row = best ? lastNumber(best.y) : -1;
    if (!best || row < 0) return;
    const x = plot.valToPos(best.x[row] ?? 0, 'x', true);
    const y = plot.valToPos(best.y[row] ?? 0, 'y', true);
    const { left, top, width, height } = plot.bbox;
    if (x < left || x > left + width + 1 || y < top || y > top + height) return;
    const { ctx } = plot;
    ctx.save();
    ctx.font = `${14 * devicePixelRatio}px sans-serif`;
    ctx.textAlign = 'center';
    ctx.textBaseline = 'middle';
    ctx.lineWidth = 3 * devicePixelRatio;
    ctx.strokeStyle = cssColor(this.root, '--at-back', '#fff');
    ctx.fillStyle = colorOf(best.trial);
    ctx.strokeText('★', x, y);
    ctx.fillText('★', x, y);
    ctx.restore();
  };

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

  readonly #key = (event: KeyboardEvent): void => {
    if (!this.#plot || event.target !== this.root || !chartKey(this, this.#plot, event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  };

  #size(): { width: number; height: number } {
    return { width: Math.max(this.root.clientWidth, 80), height: this.height };
  }
}

function positiveOnly(column: CurveValues): CurveValues {
  return Array.from(column, (value) => (typeof value === 'number' && value <= 0 ? null : value));
}

/** Parallel coordinates of trials: one line per trial, one axis per parameter and for the objective, brushed on any of them. */

import { h, setAttribute, setText } from '../lib/dom';
import type { Trial } from '../lib/frames';
import type { Session } from '../lib/session';
import { cssColor, onThemeChange } from '../lib/theme';
import type { Translator } from '../lib/translator';
import type { AxisChoice } from './axis_choices';
import { AxisMenu, axisChoices } from './axis_choices';
import type { Brushes } from './brushes';
import { passing, withBrush } from './brushes';
import type { Dimension } from './dimensions';
import { dimensionOf } from './dimensions';
import type { AxisActions } from './parallel_axes';
import { ParallelAxes } from './parallel_axes';
import { ParallelLines, fillLegend, fillTip, shadeLayers } from './parallel_lines';
import { ParallelTable, passText } from './parallel_table';

const HEIGHT = 330;
const [TOP, BOTTOM, MISSING, SIDE] = [34, 262, 286, 62];
const NARROWEST = 104; // between two axes

/** A part of a view: `root` is its element, `update` draws what has changed; it draws while `root` has a width. */
export class ParallelCoordinates {
  readonly root: HTMLElement;
  readonly #count = h('span', { class: 'at-soft', role: 'status' });
  readonly #legend = h('span', { class: 'at-soft at-parallel-legend' });
  readonly #clear = this.#button(() => {
    this.#brush(new Map());
  });
  readonly #apply = this.#button(() => {
    this.session.choose({ hidden: this.#failing() });
  });
  readonly #menu: AxisMenu;
  readonly #lines = new ParallelLines(h('canvas', { 'aria-hidden': 'true' }));
  readonly #top = new ParallelLines(h('canvas', { 'aria-hidden': 'true' }));
  readonly #plot = h('div', { class: 'at-parallel-plot', style: `height:${HEIGHT}px` });
  readonly #tip = h('div', { class: 'at-tip', hidden: true });
  readonly #table: ParallelTable;
  readonly #details: HTMLDetailsElement;
  readonly #resize: ResizeObserver;
  readonly #endTheme: () => void;
  readonly #axes: ParallelAxes;
  readonly #chosen = new Map<string, boolean>();
  readonly #logs = new Map<string, boolean>();
  #trials: Trial[] = [];
  #dimensions: Dimension[] = [];
  #brushes: Brushes = new Map();
  #passing: number[] = [];
  #drawn = '';
  #placed = '';
  #axesVersion = 0;
  #frame = 0;
  #marked = '';
  #choices = 0;

  constructor(readonly session: Session) {
    const { trans } = session;
    this.#table = new ParallelTable(session);
    this.#menu = new AxisMenu(trans, this.#showAxis);
    this.#axes = new ParallelAxes(this.#plot, this.#tip, trans, this.#axisActions());
    setText(this.#clear, trans.__('Clear filter'));
    setText(this.#apply, trans.__('Apply to charts'));
    this.#plot.append(this.#lines.canvas, this.#top.canvas, this.#tip);
    this.#details = h(
      'details',
      { class: 'at-details' },
      h('summary', {}, trans.__('Table')),
      this.#table.root,
    );
    const tools = h('div', { class: 'at-tools' }, this.#clear, this.#apply, this.#menu.root);
    const title = trans.__('Parallel coordinates');
    const heading = h('h4', { class: 'at-heading' }, title);
    this.root = h(
      'section',
      { class: 'at-parallel', 'aria-label': title },
      h('div', { class: 'at-row' }, heading, this.#count, this.#legend, tools),
      h('div', { class: 'at-parallel-scroll' }, this.#plot),
      this.#details,
    );
    this.#listen();
    this.#resize = new ResizeObserver(() => {
      this.update();
    });
    this.#resize.observe(this.root);
    this.#endTheme = onThemeChange(() => {
      this.#changed();
    });
  }

  /** Draw what has changed since the last time; cheap when nothing has. */
  update(): void {
    const width = this.root.clientWidth;
    if (width === 0) return;
    const drawn = [this.session.version, this.#choices, width].join();
    if (drawn !== this.#drawn) this.#read(width);
    this.#drawn = drawn;
    const { trial, hover } = this.session.choices;
    const marked = [drawn, trial, hover, this.session.best()?.number].join();
    if (marked !== this.#marked) this.#mark();
    this.#marked = marked;
  }

  destroy(): void {
    this.#resize.disconnect();
    this.#endTheme();
    cancelAnimationFrame(this.#frame);
    this.root.remove();
  }

  readonly #showAxis = (key: string, isShown: boolean): void => {
    this.#chosen.set(key, isShown);
    this.#axesVersion += 1;
    this.#changed();
  };

  #axisActions(): AxisActions {
    return {
      brush: (key, brush) => {
        this.#brush(withBrush(this.#brushes, key, brush));
      },
      setLog: (key, isLog) => {
        this.#logs.set(key, isLog);
        this.#axesVersion += 1;
        this.#brush(withBrush(this.#brushes, key, undefined));
      },
    };
  }

  #changed(): void {
    this.#choices += 1;
    // A drag changes more often than a page paints.
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.update();
    });
  }

  #brush(brushes: Brushes): void {
    this.#brushes = brushes;
    this.#changed();
  }

  #read(width: number): void {
    const placed = [this.session.version, this.#axesVersion, width].join();
    if (placed !== this.#placed) {
      this.#readTrials();
      this.#place(width);
      this.#placed = placed;
    }
    this.#axes.update(this.#dimensions, this.#brushes);
    const mask = passing(this.#dimensions, this.#brushes, this.#trials.length);
    this.#passing = [...mask.keys()].filter((place) => mask[place] === 1);
    this.#drawLines(mask);
    this.#updateTexts();
    if (this.#details.open) this.#updateTable();
  }

  #readTrials(): void {
    this.#trials = [...this.session.trials.values()];
    const choices = axisChoices(this.session, this.#trials, this.#chosen);
    this.#menu.update(choices);
    this.#dimensions = shownDimensions(choices, this.#logs, this.session.trans);
  }

  #place(width: number): void {
    const axes = this.#dimensions.length;
    const whole = Math.max(width, (axes - 1) * NARROWEST + 2 * SIDE);
    const gap = axes > 1 ? (whole - 2 * SIDE) / (axes - 1) : 0;
    const x = this.#dimensions.map((_, i) => SIDE + i * gap);
    this.#plot.style.width = `${whole}px`;
    this.#axes.place(this.#dimensions, x, Math.min(gap || NARROWEST, 2 * SIDE));
    const frame = { width: whole, height: HEIGHT, top: TOP, bottom: BOTTOM, missing: MISSING, x };
    this.#lines.place(this.#dimensions, frame);
    this.#top.place(this.#dimensions, frame);
  }

  #drawLines(mask: Uint8Array): void {
    const failing = [...mask.keys()].filter((place) => mask[place] === 0);
    const faint = {
      trials: failing,
      color: cssColor(this.root, '--at-muted', '#999'),
      alpha: failing.length > 1000 ? 0.04 : 0.12,
      width: 1 / devicePixelRatio,
    };
    this.#lines.draw([faint, ...shadeLayers(this.session, this.#dimensions, this.#passing)]);
  }

  /** The best, the chosen and the pointed at trial, over the others. */
  #mark(): void {
    const { trial, hover } = this.session.choices;
    const numbers = [this.session.best()?.number, trial, hover].filter((each) => each !== undefined);
    const color = cssColor(this.root, '--at-ink', '#222');
    const places = this.#trials.flatMap((each, place) => (numbers.includes(each.number) ? [place] : []));
    const layer = { trials: places, color, alpha: 1, width: 2 };
    this.#top.draw([layer]);
    this.#table.mark();
    const shown = this.#plot.matches(':hover') ? this.session.trials.get(hover ?? -1) : undefined;
    this.#tip.hidden = shown === undefined;
    if (shown) fillTip(this.#tip, shown, this.session.trans);
  }

  #updateTexts(): void {
    const isFiltered = this.#brushes.size > 0;
    const all = this.#trials.length;
    const { trans } = this.session;
    const passing = passText(trans, this.#passing.length, all);
    setText(this.#count, isFiltered ? passing : trans._n('%1 trial', '%1 trials', all));
    this.#clear.hidden = !isFiltered;
    this.#apply.hidden = !isFiltered && this.session.choices.hidden.size === 0;
    fillLegend(this.#legend, this.session, this.#dimensions);
    const titles = this.#dimensions.map(({ title }) => title).join(', ');
    const told = trans.__('One line per trial, along %1. The table has the same trials.', titles);
    setAttribute(this.#plot, 'aria-label', told);
    setAttribute(this.#plot, 'role', 'group');
  }

  #updateTable(): void {
    this.#table.update({ trials: this.#trials, dimensions: this.#dimensions, passing: this.#passing });
  }

  #failing(): Set<number> {
    const shown = new Set(this.#passing.map((place) => this.#trials[place]?.number));
    return new Set(this.#trials.map((trial) => trial.number).filter((each) => !shown.has(each)));
  }

  #listen(): void {
    this.#details.addEventListener('toggle', () => {
      if (this.#details.open) this.#updateTable();
    });
    this.#plot.addEventListener('pointermove', (event) => {
      if (event.buttons !== 0) return;
      const { left, top } = this.#plot.getBoundingClientRect();
      const place = this.#lines.nearest(this.#passing, event.clientX - left, event.clientY - top);
      this.#tip.style.left = `${Math.min(event.clientX - left + 14, this.#plot.clientWidth - 220)}px`;
      this.session.point(place === undefined ? undefined : this.#trials[place]?.number);
      this.update();
    });
    this.#plot.addEventListener('pointerleave', () => {
      this.session.point(undefined);
      this.update();
    });
    this.#plot.addEventListener('click', (event) => {
      const { hover } = this.session.choices;
      const isLine = event.target === this.#plot || event.target === this.#top.canvas;
      if (isLine && hover !== undefined) this.session.choose({ trial: hover });
      this.update();
    });
  }

  #button(onclick: () => void): HTMLButtonElement {
    return h('button', { type: 'button', class: 'at-button', hidden: true, onclick });
  }
}

function shownDimensions(
  choices: AxisChoice[],
  logs: ReadonlyMap<string, boolean>,
  trans: Translator,
): Dimension[] {
  const shown = choices.filter(({ isShown }) => isShown);
  return shown.map(({ column }) => dimensionOf(column, trans.__('others'), logs.get(column.key)));
}

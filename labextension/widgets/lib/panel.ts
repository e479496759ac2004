/** The charts: one metric at a time or all side by side, each with its data table. */

import { Chart } from './chart';
import { ALL_METRICS } from './choices';
import { arrowTo, h, setAttribute, setText } from './dom';
import { download } from './download';
import { csvOf, pictureOf } from './export';
import { giveChart } from './give_chart';
import type { GivenChart } from './give_chart';
import type { Session } from './session';
import { ChartSettings } from './settings';
import { onThemeChange } from './theme';
import type { Translator } from './translator';
import { trend } from './trend';
import { fillDataTable } from './data_table';

const HEIGHT = 250;
const SMALL_HEIGHT = 150;
const MOST_SMALL = 12;

export class ChartPanel {
  readonly root: HTMLElement;
  readonly #tabs = h('div', { class: 'at-tabs', role: 'tablist' });
  readonly #body = h('div', { class: 'at-charts', role: 'tabpanel' });
  readonly #log = this.#toggle(() => {
    this.session.choose({ log: !this.session.choices.log });
  });
  readonly #table = this.#toggle(() => {
    this.session.choose({ table: !this.session.choices.table });
  });
  readonly #settings = this.#toggle(() => {
    this.session.choose({ settings: !this.session.choices.settings });
  });
  readonly #give: HTMLButtonElement;
  readonly #strip: ChartSettings;
  readonly #reset = h('button', {
    type: 'button',
    class: 'at-button',
    hidden: true,
    onclick: () => {
      this.#resetZoom();
    },
  });
  readonly #endTheme: () => void;
  #charts: Chart[] = [];
  #built = '';
  #dataTable = '';

  constructor(readonly session: Session) {
    const { trans } = session;
    this.#give = giveChart(trans, () => this.#given());
    this.#label(trans);
    const tools = h('div', { class: 'at-tools' }, this.#reset, this.#give, this.#log, this.#table, this.#settings);
    this.#strip = new ChartSettings(session, {
      savePicture: this.#savePicture,
      savePoints: this.#savePoints,
    });
    this.root = h(
      'div',
      { class: 'at-charts-part', role: 'group', 'aria-label': trans.__('Curves') }, // no landmark: a page may show many experiments
      h('div', { class: 'at-row' }, this.#tabs, tools),
      this.#strip.root,
      this.#body,
    );
    this.#tabs.addEventListener('keydown', (event) => {
      this.#key(event);
    });
    this.#endTheme = onThemeChange(() => {
      for (const chart of this.#charts) chart.redraw();
    });
  }

  update(): void {
    const metrics = this.session.metrics();
    const chosen = this.session.metric();
    this.root.hidden = metrics.length === 0;
    const { table, log, settings } = this.session.choices;
    setAttribute(this.#settings, 'aria-expanded', String(settings));
    setAttribute(this.#settings, 'aria-pressed', String(settings));
    const shown =
      chosen === ALL_METRICS ? metrics.slice(0, MOST_SMALL) : metrics.filter((name) => name === chosen);
    setAttribute(this.#log, 'aria-pressed', String(log));
    setAttribute(this.#table, 'aria-pressed', String(table));
    this.#log.hidden = table;
    this.#give.hidden = table;
    const built = JSON.stringify([metrics, chosen, table]);
    if (built !== this.#built) {
      this.#built = built;
      this.#fillTabs(metrics, chosen);
      this.#build(shown, chosen === ALL_METRICS);
    }
    if (table) this.#updateDataTable(shown);
    for (const chart of this.#charts) this.#updateChart(chart);
    // A chart knows what it spans when it has painted, in a microtask of its own.
    queueMicrotask(() => {
      this.#strip.update(shown.length === 1 ? shown[0] : undefined, this.#charts[0]?.span);
    });
  }

  destroy(): void {
    this.#endTheme();
    for (const chart of this.#charts) chart.destroy();
  }

  readonly #savePicture = (): void => {
    pictureOf(this.session, this.#charts).toBlob((blob) => {
      if (blob) download(`${this.#fileName()}.png`, blob);
    });
  };

  readonly #savePoints = (): void => {
    const metric = this.session.metric();
    const metrics = metric === ALL_METRICS ? this.session.metrics() : metric ? [metric] : [];
    download(`${this.#fileName()}.csv`, new Blob([csvOf(this.session, metrics)], { type: 'text/csv' }));
  };

  #fileName(): string {
    return `${this.session.experiment?.name ?? 'experiment'}-${this.#metricName()}`;
  }

  #metricName(): string {
    const metric = this.session.metric();
    return metric === ALL_METRICS ? 'all' : (metric ?? '');
  }

  #updateChart(chart: Chart): void {
    chart.update();
    const trial = this.session.best() ?? this.session.focus();
    const line = trend(chart.metric, this.session.curve(chart.metric, trial?.number), this.session.trans);
    const { names, trans } = this.session;
    const sentences = [
      trans.__('Curves of %1, %2.', chart.metric, names.counted(chart.curves.length)),
      ...(trial ? [`${names.nameOf(trial.number)}: ${line}.`] : []),
      trans.__('Arrow keys read values.'),
    ];
    setAttribute(chart.root, 'aria-label', sentences.join(' '));
  }

  #updateDataTable(shown: string[]): void {
    const state = [
      this.session.version,
      this.session.choices.axis,
      this.session.choices.trial,
      ...this.session.choices.hidden,
      'of',
      ...shown,
    ].join();
    if (state === this.#dataTable && this.#body.childElementCount > 0) return;
    this.#dataTable = state;
    this.#body.replaceChildren(...shown.map((metric) => fillDataTable(this.session, metric)));
  }

  #build(shown: string[], all: boolean): void {
    for (const chart of this.#charts) chart.destroy();
    this.#charts = [];
    this.#dataTable = '';
    this.#body.replaceChildren();
    this.#body.classList.toggle('at-small', all && !this.session.choices.table);
    this.#reset.hidden = true;
    if (this.session.choices.table) return;
    for (const metric of shown) {
      const chart = new Chart(this.session, metric, all ? SMALL_HEIGHT : HEIGHT, () => {
        this.#showReset();
      });
      setAttribute(chart.root, 'role', 'img');
      const title = h('figcaption', { class: 'at-title' }, metric);
      this.#body.append(h('figure', {}, ...(all ? [title] : []), chart.root));
      this.#charts.push(chart);
    }
  }

  #showReset(): void {
    this.#reset.hidden = !this.#charts.some((chart) => chart.zoom);
  }

  #resetZoom(): void {
    for (const chart of this.#charts) chart.setZoom(undefined);
  }

  #fillTabs(metrics: string[], chosen: string | undefined): void {
    const focused = this.#tabs.contains(document.activeElement);
    const tabs = tabNames(metrics).map((name) => {
      const tab = h('button', {
        type: 'button',
        role: 'tab',
        class: 'at-tab',
        'aria-selected': String(name === chosen),
      });
      tab.tabIndex = name === chosen ? 0 : -1;
      tab.addEventListener('click', () => {
        this.session.choose({ metric: name });
      });
      setText(tab, name === ALL_METRICS ? this.session.trans.__('All') : name);
      return tab;
    });
    this.#tabs.replaceChildren(...tabs);
    if (focused) tabs.find((tab) => tab.tabIndex === 0)?.focus();
  }

  #key(event: KeyboardEvent): void {
    // From the metric that is chosen: a second press may come before the first one has moved the focus.
    const names = tabNames(this.session.metrics());
    const next = arrowTo(event.key, names.indexOf(this.session.metric() ?? ''), names.length);
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.session.choose({ metric: names[next] });
  }

  #toggle(onclick: () => void): HTMLButtonElement {
    return h('button', { type: 'button', class: 'at-button', 'aria-pressed': 'false', onclick });
  }

  #label(trans: Translator): void {
    setAttribute(this.#tabs, 'aria-label', trans.__('Metrics'));
    setText(this.#reset, trans.__('Reset zoom'));
    for (const [button, text, title] of [
      [this.#log, trans.__('Log scale'), trans.__('Logarithmic values')],
      [this.#table, trans.__('Table'), trans.__('Show the numbers as a table')],
      [this.#settings, trans.__('Settings'), trans.__('Smoothing, axes, files')],
    ] as const) {
      setText(button, text);
      button.title = title;
    }
  }

  #given(): Omit<GivenChart, 'x' | 'y'> {
    const { experiment } = this.session;
    return {
      id: experiment?.id ?? '',
      experiment: experiment?.name ?? '',
      metric: this.#metricName(),
      picture: pictureOf(this.session, this.#charts),
    };
  }
}

function tabNames(metrics: string[]): string[] {
  return metrics.length > 1 ? [...metrics, ALL_METRICS] : metrics;
}

/** The runs that are compared: their results, and which trial of each is shown. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { h, setAttribute, setText } from '../../widgets/lib/dom';
import { duration, number, stateWord } from '../../widgets/lib/format';
import { swatch } from '../../widgets/lib/icons';
import { ENDED } from '../api/states';
import type { Run } from './run';
import type { RunsModel } from './runs_model';

export interface RunsTableOptions {
  model: RunsModel;
  trans: TranslationBundle;
  /** Show an experiment by itself. */
  open: (id: string) => void;
}

export class RunsTable {
  readonly root: HTMLElement;
  readonly #metric = h('th', { scope: 'col', class: 'at-right' });
  readonly #rows: RunRow[];

  constructor(readonly options: RunsTableOptions) {
    const { model, trans } = options;
    const heads = [
      h('td'),
      head(trans.__('Experiment')),
      head(trans.__('State')),
      head(trans.__('Trial')),
      head(trans.__('Objective')),
      head(trans.__('Value'), 'at-right'),
      this.#metric,
      head(trans.__('Trials'), 'at-right'),
      head(trans.__('Duration'), 'at-right'),
      h('td'),
    ];
    this.#rows = model.runs.map((run) => new RunRow(run, options));
    const table = h(
      'table',
      { class: 'at-table' },
      h('thead', {}, h('tr', {}, ...heads)),
      h('tbody', {}, ...this.#rows.map(({ root }) => root)),
    );
    const label = trans.__('Results');
    this.root = h('section', { 'aria-label': label }, h('div', { class: 'at-compare-scroll' }, table));
  }

  update(): void {
    const metric = this.options.model.session
      .metrics()
      .find((name) => name === this.options.model.session.metric());
    setText(this.#metric, metric ? this.options.trans.__('Last %1', metric) : '');
    for (const row of this.#rows) row.update(metric);
  }
}

function head(text: string, kind?: string): HTMLElement {
  return h('th', { scope: 'col', class: kind }, text);
}

/** Made once, and touched only where something has changed. */
class RunRow {
  readonly #swatch: HTMLButtonElement;
  readonly #name: HTMLButtonElement;
  readonly #state = h('td', { class: 'at-state' });
  readonly #trial: HTMLInputElement;
  readonly #objective = h('td');
  readonly #value = h('td', { class: 'at-right' });
  readonly #last = h('td', { class: 'at-right' });
  readonly #trials = h('td', { class: 'at-right' });
  readonly #took = h('td', { class: 'at-right' });
  readonly #note = h('td', { class: 'at-soft' });
  readonly root: HTMLTableRowElement;

  constructor(
    readonly run: Run,
    readonly options: RunsTableOptions,
  ) {
    const { model, open } = options;
    const toggle = (): void => {
      model.session.toggle('hidden', run.number);
    };
    const show = (): void => {
      open(run.id);
    };
    this.#swatch = h('button', { type: 'button', onclick: toggle }, swatch(run.number));
    this.#name = h('button', { type: 'button', class: 'at-compare-name', onclick: show });
    this.#trial = h('input', { type: 'number', min: 1, step: 1, class: 'at-compare-trial' });
    this.#trial.addEventListener('change', () => {
      const chosen = this.#trial.valueAsNumber;
      void model.choose(run, Number.isInteger(chosen) && chosen > 0 ? chosen : undefined);
    });
    this.root = h(
      'tr',
      {},
      h('td', { class: 'at-swatch' }, this.#swatch),
      h('th', { scope: 'row' }, this.#name),
      ...[this.#state, h('td', {}, this.#trial), this.#objective, this.#value, this.#last],
      ...[this.#trials, this.#took, this.#note],
    );
    this.root.addEventListener('mouseenter', () => {
      model.session.point(run.number);
    });
    this.root.addEventListener('mouseleave', () => {
      model.session.point(undefined);
    });
  }

  update(metric: string | undefined): void {
    const { session } = this.options.model;
    this.#updateControls();
    this.#updateFacts();
    setText(this.#last, metric ? lastText(session.curve(metric, this.run.number)?.values) : '');
    setText(this.#note, this.#noteText());
  }

  #updateFacts(): void {
    const { details, trial, number: at } = this.run;
    const value = trial?.value ?? null;
    const star = this.options.model.session.best()?.number === at ? ' ★' : '';
    setText(this.#value, value === null ? '' : `${number(value)}${star}`);
    if (!details) return;
    setText(this.#state, stateWord(details.state, this.options.trans));
    setAttribute(this.#state, 'data-state', details.state);
    setText(this.#objective, details.objective?.label ?? '');
    setText(this.#trials, trialsText(details.counts, details.trials));
    setText(this.#took, duration(details.took_s));
  }

  #updateControls(): void {
    const { run } = this;
    const { model, trans } = this.options;
    const isHidden = model.session.choices.hidden.has(run.number);
    setText(this.#name, run.name);
    setAttribute(this.#name, 'title', trans.__('Open %1', run.name));
    setAttribute(this.#swatch, 'aria-pressed', String(!isHidden));
    setAttribute(this.#swatch, 'aria-label', trans.__('Curves of %1', run.name));
    setAttribute(this.#swatch, 'title', isHidden ? trans.__('Show its curves') : trans.__('Hide its curves'));
    setAttribute(this.root, 'data-hidden', isHidden);
    setAttribute(this.#trial, 'aria-label', trans.__('Trial of %1 (leave empty for the best)', run.name));
    setAttribute(this.#trial, 'max', run.details?.trials);
    const best = run.chosen === undefined ? run.trial?.number : undefined;
    const isRanked = Boolean(run.details?.objective);
    const word = isRanked ? trans.__('best') : trans.__('first');
    setAttribute(this.#trial, 'placeholder', best === undefined ? word : `${word}: ${best}`);
  }

  #noteText(): string {
    const { run } = this;
    if (run.error) return run.error;
    if (!run.details) return this.options.trans.__('Loading…');
    if (run.trial) return '';
    return run.chosen === undefined
      ? this.options.trans.__('No trial yet.')
      : this.options.trans.__('There is no trial %1.', run.chosen);
  }
}

function lastText(values: Float64Array | undefined): string {
  return values?.length ? number(values.at(-1)) : '';
}

function trialsText(counts: Record<string, number>, trials: number): string {
  const ended = Object.entries(counts).reduce((sum, [state, many]) => sum + (ENDED.has(state) ? many : 0), 0);
  return `${ended}/${trials}`;
}

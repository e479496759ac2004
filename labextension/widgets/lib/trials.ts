/** The trials: sortable, the best and the pinned ones on top, one row chosen by mouse or keyboard. */

import { ColumnChooser } from './chooser';
import type { Column } from './columns';
import { columnsOf, compare } from './columns';
import { h, setAttribute, setText } from './dom';
import type { Trial } from './frames';
import type { Session } from './session';
import { TrialRows } from './trial_rows';

export class TrialsTable {
  readonly root: HTMLElement;
  readonly #head = h('tr', { role: 'row' });
  readonly #rows: TrialRows;
  readonly #empty = h('p', { class: 'at-soft at-empty' });
  readonly #table: HTMLTableElement;
  readonly #tools: HTMLElement;
  readonly #chooser: ColumnChooser;
  readonly #showAll = this.#button(() => {
    this.session.choose({ hidden: new Set() });
  });
  #columns: Column[] = [];
  #shape = '';
  #sortedOf = '';
  #sorted: Trial[] = [];

  constructor(readonly session: Session) {
    const { trans } = session;
    const label = trans.__('Trials');
    setText(this.#empty, trans.__('No trial yet.'));
    this.#table = h('table', { class: 'at-table at-trials', role: 'grid', 'aria-label': label });
    const scroll = h('div', { class: 'at-scroll' }, this.#table);
    this.#rows = new TrialRows(session, scroll);
    this.#table.append(h('thead', { role: 'rowgroup' }, this.#head), this.#rows.root);
    this.#chooser = new ColumnChooser(session);
    this.#tools = h(
      'div',
      { class: 'at-row' },
      h('h4', { class: 'at-heading' }, label),
      h('div', { class: 'at-tools' }, this.#showAll, this.#chooser.root),
    );
    const parts = [this.#tools, scroll, this.#empty];
    this.root = h('div', { class: 'at-trials-part', role: 'group', 'aria-label': label }, ...parts);
  }

  update(): void {
    const trials = [...this.session.trials.values()];
    this.#empty.hidden = trials.length > 0;
    this.#tools.hidden = trials.length === 0;
    this.#columns = columnsOf(this.session, trials);
    this.#updateHead();
    this.#sort(trials);
    this.#rows.update(this.#sorted, this.#columns);
    setAttribute(this.#table, 'aria-rowcount', trials.length + 1);
    this.#updateTools();
    this.#chooser.update();
  }

  #updateTools(): void {
    const { choices, trans } = this.session;
    const { size } = choices.hidden;
    this.#showAll.hidden = size === 0;
    setText(this.#showAll, trans._n('Show %1 hidden trial', 'Show %1 hidden trials', size));
  }

  #updateHead(): void {
    const { sort, falling } = this.session.choices;
    const shape = JSON.stringify([this.#columns.map(({ key, head }) => [key, head]), sort, falling]);
    if (shape === this.#shape) return;
    const focused = this.#head.contains(document.activeElement);
    this.#shape = shape;
    this.#head.replaceChildren(...this.#columns.map((column) => this.#headCell(column)));
    const tracks = this.#columns.map(({ kind }) => (kind === 'reason' ? 'var(--at-reason)' : 'max-content'));
    this.#table.style.gridTemplateColumns = tracks.join(' ');
    const at = this.#columns.findIndex((column) => column.key === sort);
    if (focused) (this.#head.children[at]?.firstElementChild as HTMLElement | null)?.focus();
  }

  #headCell(column: Column): HTMLElement {
    const { sort, falling } = this.session.choices;
    const kind = column.kind === 'right' ? 'at-right' : `at-head-${column.kind}`;
    if (!column.head) return h('td', { class: kind });
    const order = column.key === sort ? (falling ? 'descending' : 'ascending') : 'none';
    const onclick = (): void => {
      this.#sortBy(column.key);
    };
    const title = column.title || undefined;
    const button = h('button', { type: 'button', class: 'at-sort', title, onclick }, column.head);
    return h('th', { scope: 'col', role: 'columnheader', 'aria-sort': order, class: kind }, button);
  }

  /** Toggles the current selection: a second press may come before the first one has been drawn. */
  #sortBy(key: string): void {
    const { sort, falling } = this.session.choices;
    this.session.choose({ sort: key, falling: key === sort && !falling });
  }

  /** The best first, then those that are pinned, then the others in the order that was chosen. */
  #sort(trials: Trial[]): void {
    const { sort, falling, pinned } = this.session.choices;
    const column = this.#columns.find(({ key }) => key === sort) ?? this.#columns[1];
    const best = this.session.best()?.number;
    // Times go on where nothing else changes.
    const clock = column?.key === 'time' ? Math.floor(this.session.now_s()) : 0;
    const sortedOf = [this.session.version, column?.key, falling, best, clock, ...pinned].join();
    if (!column || sortedOf === this.#sortedOf) return;
    this.#sortedOf = sortedOf;
    const values = new Map(trials.map((trial) => [trial, column.value(trial)]));
    const tier = ({ number }: Trial): number => (number === best ? 0 : pinned.has(number) ? 1 : 2);
    const order = (a: Trial, b: Trial): number =>
      compare(values.get(a) ?? NaN, values.get(b) ?? NaN, falling) || a.number - b.number;
    this.#sorted = trials.sort((a, b) => tier(a) - tier(b) || order(a, b));
  }

  #button(onclick: () => void): HTMLButtonElement {
    return h('button', { type: 'button', class: 'at-button', hidden: true, onclick });
  }
}

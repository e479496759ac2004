/** The trials: sortable, the best and the pinned ones on top, one row chosen by mouse or keyboard. */

import { ColumnChooser } from './chooser';
import type { Column } from './columns';
import { columnsOf, compare } from './columns';
import { h, setAttribute, setText } from './dom';
import { count } from './format';
import type { Trial } from './frames';
import { updateRow } from './rows';
import type { Session } from './session';

/** So many rows are shown at once: a page stays quick with thousands of trials. */
const ROWS = 200;

export class TrialsTable {
  readonly root: HTMLElement;
  readonly #head = h('tr', { role: 'row' });
  readonly #body = h('tbody', { role: 'rowgroup' });
  readonly #empty = h('p', { class: 'at-soft at-empty' }, 'No trial yet.');
  readonly #table: HTMLTableElement;
  readonly #tools: HTMLElement;
  readonly #chooser: ColumnChooser;
  readonly #showAll = this.#button('', () => {
    this.session.choose({ hidden: new Set() });
  });
  readonly #more = this.#button('', () => {
    this.#rows += ROWS;
    this.update();
  });
  #columns: Column[] = [];
  #shape = '';
  #rows = ROWS;

  constructor(readonly session: Session) {
    this.#table = h('table', { class: 'at-table at-trials', role: 'grid', 'aria-label': 'Trials' });
    this.#table.append(h('thead', { role: 'rowgroup' }, this.#head), this.#body);
    this.#chooser = new ColumnChooser(session);
    this.#tools = h(
      'div',
      { class: 'at-row' },
      h('h4', { class: 'at-heading' }, 'Trials'),
      h('div', { class: 'at-tools' }, this.#showAll, this.#chooser.root),
    );
    const scroll = h('div', { class: 'at-scroll' }, this.#table);
    const parts = [this.#tools, scroll, this.#more, this.#empty];
    this.root = h('section', { class: 'at-trials-part', 'aria-label': 'Trials' }, ...parts);
    this.#listen();
  }

  update(): void {
    const trials = [...this.session.trials.values()];
    this.#empty.hidden = trials.length > 0;
    this.#tools.hidden = trials.length === 0;
    this.#columns = columnsOf(this.session, trials);
    this.#updateHead();
    const shown = this.#sorted(trials);
    this.#updateRows(shown.slice(0, this.#rows));
    this.#updateTools(trials.length);
    this.#chooser.update();
  }

  #listen(): void {
    const rowOf = (event: Event): HTMLTableRowElement | null => (event.target as HTMLElement).closest('tr');
    this.#body.addEventListener('keydown', (event) => {
      this.#key(event);
    });
    this.#body.addEventListener('click', (event) => {
      const row = rowOf(event);
      if (row && !(event.target as HTMLElement).closest('button, .at-ask')) this.#choose(row);
    });
    this.#body.addEventListener('mouseover', (event) => {
      const row = rowOf(event);
      if (row) this.session.point(Number(row.dataset.trial));
    });
    this.#body.addEventListener('mouseleave', () => {
      this.session.point(undefined);
    });
  }

  #updateTools(total: number): void {
    const { hidden } = this.session.choices;
    this.#showAll.hidden = hidden.size === 0;
    setText(this.#showAll, `Show ${count(hidden.size, 'hidden trial')}`);
    this.#more.hidden = total <= this.#rows;
    setText(this.#more, `Show ${Math.min(ROWS, total - this.#rows)} more of ${total} trials`);
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
  #sorted(trials: Trial[]): Trial[] {
    const { sort, falling, pinned } = this.session.choices;
    const column = this.#columns.find(({ key }) => key === sort) ?? this.#columns[1];
    if (!column) return trials;
    const best = this.session.best()?.number;
    const values = new Map(trials.map((trial) => [trial, column.value(trial)]));
    const tier = ({ number }: Trial): number => (number === best ? 0 : pinned.has(number) ? 1 : 2);
    const order = (a: Trial, b: Trial): number =>
      compare(values.get(a) ?? NaN, values.get(b) ?? NaN, falling) || a.number - b.number;
    return trials.sort((a, b) => tier(a) - tier(b) || order(a, b));
  }

  #updateRows(trials: Trial[]): void {
    const held = this.#held();
    while (this.#body.rows.length > trials.length) this.#body.deleteRow(-1);
    const chosen = this.session.focus()?.number;
    const best = this.session.best()?.number;
    const { hidden, pinned, hover } = this.session.choices;
    const stop = Math.max(
      trials.findIndex((trial) => trial.number === chosen),
      0,
    );
    trials.forEach((trial, i) => {
      const row = this.#body.rows[i] ?? this.#body.insertRow();
      setAttribute(row, 'role', 'row');
      setAttribute(row, 'aria-selected', String(trial.number === chosen));
      setAttribute(row, 'data-best', trial.number === best);
      setAttribute(row, 'data-pinned', pinned.has(trial.number));
      setAttribute(row, 'data-hidden', hidden.has(trial.number));
      setAttribute(row, 'data-hover', trial.number === hover);
      row.tabIndex = i === stop ? 0 : -1;
      updateRow(this.session, row, trial, this.#columns, i === stop);
    });
    if (held) this.#hold(held.trial, held.control);
  }

  /** The trial that has the focus, and which of its buttons; -1 for the row itself. */
  #held(): { trial: string | undefined; control: number } | undefined {
    const row = document.activeElement?.closest('tr');
    if (!row || !this.#body.contains(row)) return undefined;
    const control = [...row.querySelectorAll('button')].indexOf(document.activeElement as HTMLButtonElement);
    return { trial: row.dataset.trial, control };
  }

  /** The focus goes with its trial when rows change their order. */
  #hold(trial: string | undefined, control: number): void {
    const row = [...this.#body.rows].find((row) => row.dataset.trial === trial);
    if (!row || row.contains(document.activeElement)) return;
    const target = control < 0 ? row : [...row.querySelectorAll('button')][control];
    target?.focus({ preventScroll: true });
  }

  #key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    const row = target.closest('tr');
    if (!row || (target !== row && ['Enter', ' '].includes(event.key))) return;
    const rows = [...this.#body.rows];
    const at = rows.indexOf(row);
    const moves: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: rows.length - 1,
    };
    const next = rows[moves[event.key] ?? (event.key === 'Enter' || event.key === ' ' ? at : -1)];
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    this.#choose(next);
    next.focus();
  }

  #choose(row: HTMLTableRowElement): void {
    this.session.choose({ trial: Number(row.dataset.trial) });
    this.session.askLog();
  }

  #button(text: string, onclick: () => void): HTMLButtonElement {
    return h('button', { type: 'button', class: 'at-button', hidden: true, onclick }, text);
  }
}

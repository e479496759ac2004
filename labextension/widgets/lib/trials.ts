/** The trials: sortable, one row chosen by mouse or keyboard. */

import { h, setAttribute, setText } from './dom';
import { duration, number, plain, stateWord } from './format';
import type { Trial } from './frames';
import { ACTIVE } from './frames';
import type { Session } from './session';

interface Column {
  key: string;
  head: string;
  right: boolean;
  value(trial: Trial): number | string;
  text(trial: Trial): string;
}

const MOST_PARAMETERS = 6;

export class TrialsTable {
  readonly root: HTMLElement;
  readonly #head = h('tr');
  readonly #body = h('tbody');
  readonly #empty = h('p', { class: 'at-soft at-empty' }, 'No trial yet.');
  #columns: Column[] = [];
  #shape = '';

  constructor(readonly session: Session) {
    const table = h('table', { class: 'at-table at-trials', role: 'grid', 'aria-label': 'Trials' });
    table.append(h('thead', {}, this.#head), this.#body);
    this.root = h(
      'section',
      { 'aria-label': 'Trials' },
      h('div', { class: 'at-scroll' }, table),
      this.#empty,
    );
    this.#body.addEventListener('keydown', (event) => {
      this.#key(event);
    });
    this.#body.addEventListener('click', (event) => {
      const row = (event.target as HTMLElement).closest('tr');
      if (row) this.#choose(row);
    });
  }

  update(): void {
    const trials = [...this.session.trials.values()];
    this.#empty.hidden = trials.length > 0;
    this.#columns = this.#makeColumns(trials);
    this.#updateHead();
    this.#sort(trials);
    this.#updateRows(trials);
  }

  #makeColumns(trials: Trial[]): Column[] {
    const objective = this.session.experiment?.objective_label;
    const names = [...new Set(trials.flatMap((trial) => Object.keys(trial.params)))].slice(
      0,
      MOST_PARAMETERS,
    );
    const value: Column = {
      key: 'value',
      head: objective ?? '',
      right: true,
      value: (trial) => trial.value ?? NaN,
      text: (trial) => (trial.value === null ? '' : number(trial.value)),
    };
    const reasons = trials.some((trial) => trial.reason !== '');
    return [
      {
        key: 'number',
        head: '#',
        right: true,
        value: (trial) => trial.number,
        text: (trial) => String(trial.number),
      },
      {
        key: 'state',
        head: 'State',
        right: false,
        value: (trial) => trial.state,
        text: (trial) => stateWord(trial.state),
      },
      ...(objective ? [value] : []),
      ...names.map(parameterColumn),
      {
        key: 'time',
        head: 'Time',
        right: true,
        value: (trial) => this.#spent(trial),
        text: (trial) => this.#time(trial),
      },
      ...(reasons ? [reasonColumn] : []),
    ];
  }

  #updateHead(): void {
    const { sort, falling } = this.session.choices;
    const shape = JSON.stringify([this.#columns.map((column) => column.head), sort, falling]);
    if (shape === this.#shape) return;
    const focused = this.#head.contains(document.activeElement);
    this.#shape = shape;
    const heads = this.#columns.map((column) => {
      const order = column.key === sort ? (falling ? 'descending' : 'ascending') : 'none';
      const onclick = (): void => {
        this.#sortBy(column.key);
      };
      const button = h('button', { type: 'button', class: 'at-sort', onclick }, column.head);
      return h('th', { scope: 'col', 'aria-sort': order, class: column.right ? 'at-right' : '' }, button);
    });
    this.#head.replaceChildren(...heads);
    const at = this.#columns.findIndex((column) => column.key === sort);
    if (focused) (this.#head.children[at]?.firstElementChild as HTMLElement | null)?.focus();
  }

  /** The choice as it stands is turned over: a second press may come before the first one has been drawn. */
  #sortBy(key: string): void {
    const { sort, falling } = this.session.choices;
    this.session.choose({ sort: key, falling: key === sort && !falling });
  }

  #sort(trials: Trial[]): void {
    const { sort, falling } = this.session.choices;
    const column = this.#columns.find(({ key }) => key === sort) ?? this.#columns[0];
    if (!column) return;
    trials.sort((a, b) => compare(column.value(a), column.value(b), falling) || a.number - b.number);
  }

  #updateRows(trials: Trial[]): void {
    while (this.#body.rows.length > trials.length) this.#body.deleteRow(-1);
    const chosen = this.session.focus()?.number;
    const best = this.session.best()?.number;
    const stop = trials.findIndex((trial) => trial.number === chosen);
    trials.forEach((trial, i) => {
      const row = this.#body.rows[i] ?? this.#body.insertRow();
      setAttribute(row, 'data-trial', trial.number);
      setAttribute(row, 'aria-selected', String(trial.number === chosen));
      setAttribute(row, 'data-best', trial.number === best);
      row.tabIndex = i === Math.max(stop, 0) ? 0 : -1;
      this.#updateCells(row, trial);
    });
  }

  #updateCells(row: HTMLTableRowElement, trial: Trial): void {
    while (row.cells.length > this.#columns.length) row.deleteCell(-1);
    this.#columns.forEach((column, i) => {
      const cell = row.cells[i] ?? row.insertCell();
      const kind = column.key === 'reason' ? 'at-reason' : '';
      const name = column.key === 'state' ? 'at-state' : column.right ? 'at-right' : kind;
      if (cell.className !== name) cell.className = name;
      const text = column.text(trial);
      setText(cell, text);
      setAttribute(cell, 'data-state', column.key === 'state' ? trial.state : undefined);
      setAttribute(cell, 'title', text.length > 18 ? text : undefined);
    });
  }

  #key(event: KeyboardEvent): void {
    const row = (event.target as HTMLElement).closest('tr');
    if (!row) return;
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

  #spent(trial: Trial): number {
    if (trial.started_s === null) return NaN;
    return (trial.ended_s ?? this.session.now_s()) - trial.started_s;
  }

  #time(trial: Trial): string {
    const spent = this.#spent(trial);
    if (Number.isNaN(spent)) return '';
    return duration(ACTIVE.has(trial.state) ? Math.floor(spent) : spent);
  }
}

const reasonColumn: Column = {
  key: 'reason',
  head: 'Reason',
  right: false,
  value: (trial) => trial.reason,
  text: (trial) => trial.reason,
};

function parameterColumn(name: string): Column {
  return {
    key: `param ${name}`,
    head: name,
    right: true,
    value: (trial) => {
      const value = trial.params[name];
      return typeof value === 'number' ? value : plain(value);
    },
    text: (trial) => plain(trial.params[name]),
  };
}

/** Missing numbers go last in both directions. */
function compare(a: number | string, b: number | string, falling: boolean): number {
  const [missingA, missingB] = [Number.isNaN(a), Number.isNaN(b)];
  if (missingA || missingB) return Number(missingA) - Number(missingB);
  const order =
    typeof a === 'number' && typeof b === 'number'
      ? a - b
      : String(a).localeCompare(String(b), undefined, { numeric: true });
  return falling ? -order : order;
}

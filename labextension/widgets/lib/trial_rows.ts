/** The body of the trials table: of thousands of trials, the rows in sight are in the page. */

import type { Column } from './columns';
import { h, setAttribute } from './dom';
import type { Trial } from './frames';
import { rowWindow } from './row_window';
import type { RowWindow } from './row_window';
import { updateRow } from './rows';
import type { Session } from './session';

/** Until rows have been measured. */
const ROW_PX = 28;
const VIEW_PX = 300;

/** The trial that has the focus, and which of its buttons; -1 for the row itself. */
interface Held {
  trial: number;
  control: number;
}

export class TrialRows {
  readonly root = h('tbody', { role: 'rowgroup' });
  #trials: readonly Trial[] = [];
  #columns: Column[] = [];
  #window: RowWindow = { first: 0, end: 0 };
  #heightPx = VIEW_PX;
  #rowPx = ROW_PX;
  /** The trial that had the focus before its row was scrolled away. */
  #left: number | undefined;

  /** @param scroll Scrolls the rows; it has the focus while the row that had it is not in the page. */
  constructor(
    private readonly session: Session,
    private readonly scroll: HTMLElement,
  ) {
    scroll.tabIndex = -1;
    this.#listen();
    new ResizeObserver(this.#scrolled).observe(scroll); // goes with it
  }

  /** @param trials In the order of the rows. */
  update(trials: readonly Trial[], columns: Column[]): void {
    this.#trials = trials;
    this.#columns = columns;
    this.#draw(this.#windowAt(this.scroll.scrollTop));
  }

  #windowAt(topPx: number): RowWindow {
    return rowWindow(this.#trials.length, { topPx, heightPx: this.#heightPx, rowPx: this.#rowPx });
  }

  #draw(window: RowWindow): void {
    const held = this.#held();
    this.#window = window;
    const trials = this.#trials.slice(window.first, window.end);
    const isBestAbove = window.first > 0 && this.#trials[0]?.number === this.session.best()?.number;
    // The best stays in sight however far one has scrolled.
    const shown = isBestAbove ? [...this.#trials.slice(0, 1), ...trials] : trials;
    while (this.root.rows.length > shown.length) this.root.deleteRow(-1);
    const chosen = this.session.focus()?.number;
    const stop = shown.find(({ number }) => number === chosen) ?? shown[0];
    shown.forEach((trial, i) => {
      this.#drawRow(this.root.rows[i] ?? this.root.insertRow(), trial, trial === stop);
    });
    this.#leaveRoom(isBestAbove ? 1 : 0);
    if (held) this.#hold(held);
  }

  #drawRow(row: HTMLTableRowElement, trial: Trial, isStop: boolean): void {
    const { hidden, pinned, hover } = this.session.choices;
    const { number } = trial;
    setAttribute(row, 'role', 'row');
    setAttribute(row, 'aria-selected', String(number === this.session.focus()?.number));
    setAttribute(row, 'data-best', number === this.session.best()?.number);
    setAttribute(row, 'data-front', this.session.front().includes(trial));
    setAttribute(row, 'data-pinned', pinned.has(number));
    setAttribute(row, 'data-hidden', hidden.has(number));
    setAttribute(row, 'data-hover', number === hover);
    row.tabIndex = isStop ? 0 : -1;
    updateRow(this.session, row, trial, this.#columns, isStop);
  }

  /** Room for the rows that are not in the page, and which rows these are. */
  #leaveRoom(above: number): void {
    const { first, end } = this.#window;
    const rows = [...this.root.rows];
    const [top, bottom] = [first - above, this.#trials.length - end];
    rows.forEach((row, i) => {
      const isFirst = i === above && top > 0;
      const isLast = i === rows.length - 1 && bottom > 0;
      row.style.marginTop = isFirst ? `${top * this.#rowPx}px` : '';
      row.style.marginBottom = isLast ? `${bottom * this.#rowPx}px` : '';
      const place = i < above ? 0 : first + i - above;
      setAttribute(row, 'aria-rowindex', place + 2); // from 1, and the head is a row
    });
  }

  readonly #scrolled = (): void => {
    this.#measure();
    const window = this.#windowAt(this.scroll.scrollTop);
    if (window.first !== this.#window.first || window.end !== this.#window.end) this.#draw(window);
  };

  #measure(): void {
    const [from, to] = [this.root.rows[1], this.root.rows[this.root.rows.length - 1]];
    if (!from || !to || from === to) return;
    this.#heightPx = this.scroll.clientHeight || VIEW_PX;
    const spanPx = to.getBoundingClientRect().bottom - from.getBoundingClientRect().top;
    const rowPx = spanPx / (this.root.rows.length - 1);
    if (rowPx > 0) this.#rowPx = rowPx;
  }

  #held(): Held | undefined {
    const { activeElement } = document;
    if (activeElement === this.scroll)
      return this.#left === undefined ? undefined : { trial: this.#left, control: -1 };
    const row = activeElement?.closest('tr');
    if (!row || !this.root.contains(row)) return undefined;
    const control = [...row.querySelectorAll('button')].indexOf(activeElement as HTMLButtonElement);
    return { trial: Number(row.dataset.trial), control };
  }

  /** The focus goes with its trial when rows change their order. */
  #hold({ trial, control }: Held): void {
    const row = this.#rowOf(trial);
    this.#left = row ? undefined : trial;
    if (row?.contains(document.activeElement)) return;
    const button = row?.querySelectorAll('button')[control];
    (button ?? row ?? this.scroll).focus({ preventScroll: true });
  }

  #rowOf(trial: number): HTMLTableRowElement | undefined {
    return [...this.root.rows].find((row) => row.dataset.trial === String(trial));
  }

  #listen(): void {
    const rowAt = (event: Event): HTMLTableRowElement | null => (event.target as HTMLElement).closest('tr');
    this.scroll.addEventListener('scroll', this.#scrolled);
    this.scroll.addEventListener('keydown', (event) => {
      this.#key(event);
    });
    this.root.addEventListener('click', (event) => {
      const row = rowAt(event);
      if (row && !(event.target as HTMLElement).closest('button, .at-ask'))
        this.#choose(Number(row.dataset.trial));
    });
    this.root.addEventListener('mouseover', (event) => {
      const row = rowAt(event);
      if (row) this.session.point(Number(row.dataset.trial));
    });
    this.root.addEventListener('mouseleave', () => {
      this.session.point(undefined);
    });
  }

  #key(event: KeyboardEvent): void {
    const held = this.#held();
    const isOnRow = event.target === this.scroll || (event.target as HTMLElement).matches('tr');
    if (!held || (!isOnRow && ['Enter', ' '].includes(event.key))) return;
    const at = this.#trials.findIndex(({ number }) => number === held.trial);
    const moves: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: this.#trials.length - 1,
      Enter: at,
      ' ': at,
    };
    const next = this.#trials[moves[event.key] ?? -1];
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    this.#goTo(next.number, moves[event.key] ?? at);
  }

  #goTo(trial: number, place: number): void {
    if (!this.#rowOf(trial)) {
      this.scroll.scrollTop = place * this.#rowPx - this.#heightPx / 2;
      this.#scrolled();
    }
    this.#choose(trial);
    this.#rowOf(trial)?.focus();
  }

  #choose(trial: number): void {
    this.session.choose({ trial });
    this.session.log.ask();
  }
}

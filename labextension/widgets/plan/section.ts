/** One part of the page: a title, a picture, and the same as a table. */

import { h, setText } from '../lib/dom';
import type { Translator } from '../lib/translator';

export class Section {
  readonly root: HTMLElement;
  readonly #title = h('h4', { class: 'at-title' });
  readonly #note = h('span', { class: 'at-soft at-note' });
  readonly #switch: HTMLButtonElement;
  readonly #dataTable = h('div', { hidden: true });

  /** `table` makes the data table again whenever it is opened or the plan changes. */
  constructor(
    name: string,
    title: string,
    readonly chart: HTMLElement,
    readonly table: () => HTMLElement,
    private readonly trans: Translator,
  ) {
    this.#switch = h('button', {
      type: 'button',
      class: 'at-button',
      'aria-pressed': 'false',
      'aria-label': trans.__('%1 as a table', title),
      onclick: () => {
        this.#turn();
      },
    });
    this.#switch.append(trans.__('Table'));
    setText(this.#title, title);
    const head = h('div', { class: 'at-section-head' }, this.#title, this.#note, this.#switch);
    this.root = h(
      'section',
      { class: `at-section at-${name}`, 'aria-label': title },
      head,
      chart,
      this.#dataTable,
    );
  }

  note(text: string): void {
    setText(this.#note, text);
  }

  /** To be called when what is drawn has changed. */
  refresh(): void {
    if (!this.#dataTable.hidden) this.#dataTable.replaceChildren(this.#scrolling(this.table()));
  }

  #turn(): void {
    this.#dataTable.hidden = !this.#dataTable.hidden;
    this.chart.hidden = !this.#dataTable.hidden;
    this.#switch.setAttribute('aria-pressed', String(!this.#dataTable.hidden));
    this.refresh();
  }

  #scrolling(table: HTMLElement): HTMLElement {
    const label = this.trans.__('Table: %1', this.#title.textContent ?? '');
    return h('div', { class: 'at-scroll', tabindex: 0, role: 'region', 'aria-label': label }, table);
  }
}

/** A table of texts, with a caption unless that is empty; the first column heads its row, columns of numbers stand to the right. */
export function table(caption: string, heads: string[], rows: (string | Node)[][]): HTMLElement {
  const right = heads.map((_, i) => i > 0 && rows.length > 0 && rows.every((row) => isNumber(row[i])));
  const cell = (content: string | Node, i: number): HTMLElement =>
    i === 0 && content !== ''
      ? h('th', { scope: 'row' }, content)
      : h('td', { class: right[i] ? 'at-right' : undefined }, content);
  return h(
    'table',
    { class: 'at-table' },
    ...(caption ? [h('caption', {}, caption)] : []),
    h('thead', {}, h('tr', {}, ...heads.map((head, i) => columnHead(head, right[i] ?? false)))),
    h('tbody', {}, ...rows.map((row) => h('tr', {}, ...row.map(cell)))),
  );
}

function columnHead(head: string, right: boolean): HTMLElement {
  const look = { class: right ? 'at-right' : undefined };
  return head ? h('th', { scope: 'col', ...look }, head) : h('td', look);
}

function isNumber(content: string | Node | undefined): boolean {
  return typeof content === 'string' && /^[<\d–-]/.test(content);
}

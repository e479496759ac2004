/** A text with line numbers, or two texts and their differences, as a table of plain text. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { h } from '../../widgets/lib/dom';
import type { Line, Part } from './line_diff';
import { changes, folded, lineDiff, plainLines } from './line_diff';

export interface Side {
  name: string;
  text: string;
  /** By line, where it comes from; "" for nowhere. */
  origins?: string[];
}

const SIGNS = { same: '', removed: '−', added: '+' };
const MOST_LINES = 2000; // at once: a page stays quick with a megabyte of code

export class DiffView {
  readonly #summary = h('p', { class: 'jp-AutotrainCode-summary', role: 'status' });
  readonly #body = h('tbody');
  readonly #head = h('thead');
  readonly #table = h('table', {}, this.#head, this.#body);
  readonly #scroll = h('div', { class: 'jp-AutotrainCode-scroll', tabindex: 0, role: 'region' }, this.#table);
  readonly root = h('div', { class: 'jp-AutotrainCode-text' }, this.#summary, this.#scroll);

  constructor(readonly trans: TranslationBundle) {}

  /** Show one text. */
  showText(side: Side): void {
    const { trans } = this;
    const from = side.origins ? [trans.__('From')] : [];
    this.#begin(side.name, [trans.__('Line'), trans.__('Code'), ...from]);
    this.#summary.textContent = '';
    this.#append([{ lines: plainLines(side.text) }], (line) => [
      numberCell(line.left),
      textCell(line),
      ...(side.origins ? [originCell(side.origins[(line.left ?? 0) - 1])] : []),
    ]);
  }

  /** Show what differs between two texts. */
  showDiff(left: Side, right: Side): void {
    const { trans } = this;
    const title = trans.__('%1 and %2', left.name, right.name);
    this.#begin(title, [
      trans.__('Line of %1', left.name),
      trans.__('Line of %1', right.name),
      '±',
      trans.__('Code'),
    ]);
    const lines = lineDiff(left.text, right.text);
    const { removed, added } = changes(lines);
    this.#summary.textContent =
      removed + added === 0
        ? trans.__('No difference.')
        : trans.__('Lines only in %2 (−): %1. Only in %4 (+): %3.', removed, left.name, added, right.name);
    this.#append(folded(lines), (line) => [
      numberCell(line.left),
      numberCell(line.right),
      h('td', { class: 'jp-AutotrainCode-sign' }, SIGNS[line.kind]),
      textCell(line),
    ]);
  }

  #begin(name: string, heads: string[]): void {
    this.#scroll.setAttribute('aria-label', name);
    this.#head.replaceChildren(h('tr', {}, ...heads.map((head) => h('th', { scope: 'col' }, head))));
    this.#body.replaceChildren();
  }

  #append(parts: Part[], cells: (line: Line) => Node[]): void {
    const rowOf = (line: Line): HTMLElement => h('tr', { 'data-kind': line.kind }, ...cells(line));
    for (const part of parts) {
      const many = this.#columns();
      const isFold = 'skipped' in part;
      const lines = isFold ? part.skipped : part.lines;
      const shown = isFold ? 0 : Math.min(lines.length, MOST_LINES);
      this.#body.append(...lines.slice(0, shown).map(rowOf));
      if (shown < lines.length) this.#body.append(this.#fold(lines.slice(shown), many, rowOf));
    }
  }

  #columns(): number {
    return this.#head.rows[0]?.cells.length ?? 1;
  }

  /** A row in place of lines, which it shows when it is pressed. */
  #fold(lines: Line[], columns: number, rowOf: (line: Line) => HTMLElement): HTMLElement {
    const onclick = (): void => {
      const rows = lines.map(rowOf);
      row.replaceWith(...rows);
      this.#scroll.focus({ preventScroll: true });
    };
    const text = this.trans._n('Show %1 more line', 'Show %1 more lines', lines.length);
    const row = h(
      'tr',
      { class: 'jp-AutotrainCode-fold' },
      h('td', { colspan: columns }, h('button', { type: 'button', onclick }, text)),
    );
    return row;
  }
}

function numberCell(number: number | undefined): HTMLElement {
  return h('td', { class: 'jp-AutotrainCode-number' }, number === undefined ? '' : String(number));
}

function originCell(origin = ''): HTMLElement {
  return h('td', { class: 'jp-AutotrainCode-origin' }, origin);
}

function textCell({ text }: Line): HTMLElement {
  return h('td', { class: 'jp-AutotrainCode-line' }, text);
}

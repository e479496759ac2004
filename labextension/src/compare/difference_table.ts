/** Parameters and settings of runs side by side: what differs first, the rest on demand. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { h } from '../../widgets/lib/dom';
import type { Json } from '../../widgets/lib/frames';
import type { AlignedRow } from './alignment';
import { alignedRows } from './alignment';
import type { RunsModel } from './runs_model';

export class DifferenceTable {
  readonly root: HTMLElement;
  readonly #table = h('table', { class: 'at-table at-compare-differences' });
  readonly #all: HTMLInputElement;
  #shape = '';

  constructor(
    readonly model: RunsModel,
    readonly trans: TranslationBundle,
  ) {
    this.#all = h('input', { type: 'checkbox' });
    this.#all.addEventListener('change', () => {
      this.update();
    });
    const label = trans.__('Parameters and settings');
    const tools = h('label', { class: 'at-tools' }, this.#all, trans.__('Show equal values'));
    const head = h('div', { class: 'at-row' }, h('h4', { class: 'at-heading' }, label), tools);
    const scroll = { class: 'at-compare-scroll', tabindex: 0, role: 'region', 'aria-label': label };
    this.root = h('div', {}, head, h('div', scroll, this.#table));
  }

  update(): void {
    const { runs } = this.model;
    const names = runs.map(({ name }) => name);
    const parameters = alignedRows(runs.map((run) => run.parameters()));
    const settings = alignedRows(runs.map((run) => run.settings()));
    const shape = JSON.stringify([names, parameters, settings, this.#all.checked] as Json);
    if (shape === this.#shape) return;
    this.#shape = shape;
    const heads = [this.trans.__('Name'), ...names].map((name) =>
      h('th', { scope: 'col', title: name }, name),
    );
    this.#table.replaceChildren(
      h('thead', {}, h('tr', {}, ...heads)),
      this.#group(this.trans.__('Parameters of the trial'), parameters),
      this.#group(this.trans.__('Settings of the experiment'), settings),
    );
  }

  #group(title: string, rows: AlignedRow[]): HTMLElement {
    const shown = this.#all.checked ? rows : rows.filter(({ differs }) => differs);
    const columns = this.model.runs.length + 1;
    const equal = rows.length - rows.filter(({ differs }) => differs).length;
    const heads = `${title}: ${this.trans.__('%1 different, %2 equal', rows.length - equal, equal)}`;
    return h(
      'tbody',
      {},
      h('tr', {}, h('th', { scope: 'rowgroup', colspan: columns, class: 'at-soft' }, heads)),
      ...shown.map((row) => rowOf(row)),
    );
  }
}

function rowOf({ name, texts, differs }: AlignedRow): HTMLElement {
  const cells = texts.map((text) => h('td', { title: text.length > 24 ? text : undefined }, text));
  return h(
    'tr',
    { 'data-differs': differs },
    h('th', { scope: 'row' }, differs ? `≠ ${name}` : name),
    ...cells,
  );
}

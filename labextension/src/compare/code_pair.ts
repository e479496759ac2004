/** The code of two of the runs, and what differs. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { h } from '../../widgets/lib/dom';
import type { Code } from '../api/runs';
import { DiffView } from '../code/diff_view';
import { keptCode } from '../code/kept_code';
import type { RunsModel } from './runs_model';

export class CodePair {
  readonly root: HTMLDetailsElement;
  readonly #left = h('select', { class: 'jp-mod-styled' });
  readonly #right = h('select', { class: 'jp-mod-styled' });
  readonly #message = h('p', { class: 'jp-AutotrainCode-message', role: 'status', hidden: true });
  readonly #header: DiffView;
  readonly #script: DiffView;
  readonly #codes = new Map<string, Promise<Code>>();
  #names = '';
  #asked = 0;

  constructor(
    readonly model: RunsModel,
    readonly trans: TranslationBundle,
  ) {
    this.#header = new DiffView(trans);
    this.#script = new DiffView(trans);
    const pair = h(
      'div',
      { class: 'jp-AutotrainCode-pair' },
      h('label', {}, trans.__('Code of'), ' ', this.#left),
      h('label', {}, trans.__('and of'), ' ', this.#right),
    );
    const parts = [pair, this.#message, this.#header.root, this.#script.root];
    const body = h('div', { class: 'jp-AutotrainCode' }, ...parts);
    this.root = h('details', { class: 'at-details' }, h('summary', {}, trans.__('Code')), body);
    this.root.addEventListener('toggle', () => {
      void this.#show();
    });
    for (const select of [this.#left, this.#right])
      select.addEventListener('change', () => {
        void this.#show();
      });
  }

  update(): void {
    const names = JSON.stringify(this.model.runs.map(({ name }) => name));
    if (names === this.#names) return;
    this.#names = names;
    for (const [select, usual] of [
      [this.#left, 0],
      [this.#right, 1],
    ] as const) {
      const chosen = select.selectedIndex < 0 ? usual : select.selectedIndex;
      select.replaceChildren(...this.model.runs.map(({ id, name }) => h('option', { value: id }, name)));
      select.selectedIndex = Math.min(chosen, this.model.runs.length - 1);
    }
    void this.#show();
  }

  async #show(): Promise<void> {
    if (!this.root.open) return;
    const asked = ++this.#asked;
    const [one, two] = [this.#left, this.#right];
    const [first, second] = [nameIn(one), nameIn(two)];
    try {
      const [left, right] = await Promise.all([
        this.#codeOf(one.value, first),
        this.#codeOf(two.value, second),
      ]);
      if (asked !== this.#asked) return; // others have been chosen since
      this.#message.hidden = true;
      this.#script.root.hidden = false;
      this.#header.root.hidden = left.header === right.header;
      this.#header.showDiff({ name: first, text: left.header }, { name: second, text: right.header });
      this.#script.showDiff({ name: first, text: left.script }, { name: second, text: right.script });
    } catch (error) {
      if (asked !== this.#asked) return;
      this.#header.root.hidden = true;
      this.#script.root.hidden = true;
      this.#message.textContent = error instanceof Error ? error.message : String(error);
      this.#message.hidden = false;
    }
  }

  #codeOf(id: string, name: string): Promise<Code> {
    const known = this.#codes.get(id) ?? keptCode(id, name, this.trans);
    this.#codes.set(id, known);
    known.catch(() => this.#codes.delete(id)); // the next time, it is tried again
    return known;
  }
}

function nameIn(select: HTMLSelectElement): string {
  return select.selectedOptions[0]?.textContent ?? '';
}

/** The code of an experiment as it was captured, and how it differs from that of another one. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { h } from '../../widgets/lib/dom';
import { listExperiments } from '../api/experiments';
import type { ListQuery } from '../api/experiments';
import type { Code } from '../api/runs';
import { captureTable, differenceList } from './captured';
import { DiffView } from './diff_view';
import { keptCode } from './kept_code';

const NEWEST: ListQuery = { text: '', tag: '', sort: 'created', order: 'descending', limit: 200 };

export interface CodeViewOptions {
  experimentId: string;
  trans: TranslationBundle;
}

/** A part of a view; nothing is loaded before `show`. */
export class CodeView {
  readonly #message = h('p', { class: 'jp-AutotrainCode-message', role: 'status', hidden: true });
  readonly #select: HTMLSelectElement;
  readonly #captured = h('div', { class: 'jp-AutotrainCode-captured' });
  readonly #header: DiffView;
  readonly #script: DiffView;
  readonly #headerPart: HTMLElement;
  /** Everything but the message; hidden until there is code. */
  readonly #body: HTMLElement;
  readonly root: HTMLElement;
  #code: Code | undefined;
  #loading: Promise<void> | undefined;
  #asked = 0;

  constructor(readonly options: CodeViewOptions) {
    const { trans } = options;
    this.#header = new DiffView(trans);
    this.#script = new DiffView(trans);
    this.#select = h('select', { class: 'jp-mod-styled' });
    this.#select.append(h('option', { value: '' }, trans.__('(choose a run)')));
    this.#select.addEventListener('change', () => {
      void this.#compare();
    });
    const label = h('label', {}, trans.__('Compare with'), ' ', this.#select);
    this.#headerPart = h('section', {}, h('h4', {}, trans.__('Header')), this.#header.root);
    const scriptPart = h('section', {}, h('h4', {}, trans.__('Script')), this.#script.root);
    const parts = [label, this.#headerPart, scriptPart, this.#captured];
    this.#body = h('div', { class: 'jp-AutotrainCode-body', hidden: true }, ...parts);
    const name = trans.__('Captured code');
    this.root = h('section', { class: 'jp-AutotrainCode', 'aria-label': name }, this.#message, this.#body);
  }

  /** Load and show; does nothing where that has been done. */
  show(): Promise<void> {
    this.#loading ??= this.#load();
    return this.#loading;
  }

  destroy(): void {
    this.#asked += 1;
    this.root.remove();
  }

  async #load(): Promise<void> {
    const { experimentId, trans } = this.options;
    try {
      this.#code = await keptCode(experimentId, trans.__('this experiment'), trans);
      this.#captured.replaceChildren(
        ...differenceList(this.#code.differences, trans),
        ...captureTable(this.#code.captured, trans),
      );
      this.#showAlone(this.#code);
      this.#body.hidden = false;
      await this.#fillSelect();
    } catch (error) {
      this.#tell(error);
      this.#loading = undefined; // the next time it is shown, it is tried again
    }
  }

  async #fillSelect(): Promise<void> {
    const { experiments } = await listExperiments(NEWEST);
    const others = experiments.filter(({ id }) => id !== this.options.experimentId);
    this.#select.append(...others.map(({ id, name }) => h('option', { value: id }, name)));
  }

  async #compare(): Promise<void> {
    const code = this.#code;
    const other = this.#select.value;
    const asked = ++this.#asked;
    if (!code) return;
    if (!other) {
      this.#showAlone(code);
      return;
    }
    const name = this.#select.selectedOptions[0]?.textContent ?? other;
    try {
      const right = await keptCode(other, name, this.options.trans);
      if (asked !== this.#asked) return; // another one has been chosen since
      this.#message.hidden = true;
      this.#showDiff(code, right, name);
    } catch (error) {
      if (asked !== this.#asked) return;
      this.#showAlone(code);
      this.#tell(error);
    }
  }

  #showAlone(code: Code): void {
    const { trans } = this.options;
    this.#message.hidden = true;
    this.#headerPart.hidden = code.header === '';
    this.#header.showText({ name: trans.__('Header'), text: code.header });
    this.#script.showText({ name: trans.__('Script'), text: code.script, origins: code.source_map });
  }

  #showDiff(left: Code, right: Code, name: string): void {
    const here = this.options.trans.__('this one');
    this.#headerPart.hidden = left.header === '' && right.header === '';
    this.#header.showDiff({ name: here, text: left.header }, { name, text: right.header });
    this.#script.showDiff({ name: here, text: left.script }, { name, text: right.script });
  }

  #tell(error: unknown): void {
    this.#message.textContent = error instanceof Error ? error.message : String(error);
    this.#message.hidden = false;
  }
}

/** The menu of axes that parallel coordinates can show. */

import { h } from '../lib/dom';
import type { Translator } from '../lib/translator';
import type { AxisChoice } from './parallel_columns';

export class AxisMenu {
  readonly root = h('details', { class: 'at-menu' });
  readonly #list = h('div', { class: 'at-menu-list' });
  #shape = '';

  constructor(
    trans: Translator,
    readonly show: (key: string, isShown: boolean) => void,
  ) {
    this.root.append(h('summary', { class: 'at-button' }, trans.__('Axes')), this.#list);
    this.root.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || !this.root.open) return;
      this.root.open = false;
      this.root.querySelector('summary')?.focus();
    });
    this.root.addEventListener('focusout', ({ relatedTarget }) => {
      if (relatedTarget instanceof Node && !this.root.contains(relatedTarget)) this.root.open = false;
    });
  }

  update(choices: readonly AxisChoice[]): void {
    const shape = JSON.stringify(choices.map(({ column, isShown }) => [column.key, isShown]));
    if (shape === this.#shape) return;
    this.#shape = shape;
    const focused = this.#list.querySelector<HTMLInputElement>(':focus')?.name;
    this.#list.replaceChildren(...choices.map((choice) => this.#box(choice)));
    if (focused) this.#list.querySelector<HTMLElement>(`[name="${CSS.escape(focused)}"]`)?.focus();
  }

  #box({ column, isShown }: AxisChoice): HTMLElement {
    const onchange = (): void => {
      this.show(column.key, !isShown);
    };
    const box = h('input', { type: 'checkbox', name: column.key, onchange });
    box.checked = isShown;
    return h('label', {}, box, column.title);
  }
}

/** Tabs of a panel: one page at a time, by mouse or arrow keys. */

import { arrowTo, h, setAttribute } from '../../widgets/lib/dom';

export interface TabPage {
  name: string;
  node: HTMLElement;
  /** Called when it is shown. */
  shown?(): void;
}

let count = 0; // ids of elements are of the whole page

export class Tabs {
  readonly bar: HTMLElement;
  readonly pages: HTMLElement[];
  readonly #buttons: HTMLButtonElement[];
  #chosen = 0;

  constructor(
    label: string,
    private readonly all: readonly TabPage[],
  ) {
    const id = `jp-Autotrain-tabs-${count++}`;
    this.#buttons = all.map(({ name }, i) => this.#button(`${id}-${i}`, name, i));
    this.bar = h('div', { class: 'at-tabs', role: 'tablist', 'aria-label': label }, ...this.#buttons);
    this.pages = all.map(({ node }, i) =>
      h('div', { role: 'tabpanel', id: `${id}-${i}-page`, 'aria-labelledby': `${id}-${i}` }, node),
    );
    this.bar.addEventListener('keydown', (event) => {
      this.#key(event);
    });
    this.show(0);
  }

  get chosen(): string {
    return this.all[this.#chosen]?.name ?? '';
  }

  show(chosen: number): void {
    this.#chosen = chosen;
    this.#buttons.forEach((button, i) => {
      setAttribute(button, 'aria-selected', String(i === chosen));
      button.tabIndex = i === chosen ? 0 : -1;
    });
    this.pages.forEach((page, i) => {
      page.hidden = i !== chosen;
    });
    this.all[chosen]?.shown?.();
  }

  #button(id: string, name: string, i: number): HTMLButtonElement {
    const onclick = (): void => {
      this.show(i);
    };
    const controls = `${id}-page`;
    return h(
      'button',
      { type: 'button', role: 'tab', class: 'at-tab', id, 'aria-controls': controls, onclick },
      name,
    );
  }

  #key(event: KeyboardEvent): void {
    const next = arrowTo(event.key, this.#chosen, this.all.length);
    if (next === undefined) return;
    event.preventDefault();
    this.show(next);
    this.#buttons[next]?.focus();
  }
}

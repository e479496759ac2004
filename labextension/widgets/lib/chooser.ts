/** The menu of columns that the trials table can show. */

import { choicesOf } from './columns';
import type { Choice } from './columns';
import { h } from './dom';
import type { Session } from './session';

export class ColumnChooser {
  readonly root = h('details', { class: 'at-menu' });
  readonly #list = h('div', { class: 'at-menu-list' });
  #shape = '';

  constructor(readonly session: Session) {
    this.root.append(h('summary', { class: 'at-button' }, session.trans.__('Columns')), this.#list);
    this.root.addEventListener('toggle', () => {
      this.update();
    });
    this.root.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || !this.root.open) return;
      this.root.open = false;
      this.root.querySelector('summary')?.focus();
    });
    this.root.addEventListener('focusout', ({ relatedTarget }) => {
      if (relatedTarget instanceof Node && !this.root.contains(relatedTarget)) this.root.open = false;
    });
  }

  update(): void {
    const choices = choicesOf(this.session, [...this.session.trials.values()]);
    this.root.hidden = choices.length === 0;
    if (!this.root.open) return;
    const shape = JSON.stringify(choices.map(({ column, shown }) => [column.key, shown]));
    if (shape === this.#shape) return;
    this.#shape = shape;
    const focused = this.#list.querySelector<HTMLInputElement>(':focus')?.name;
    const groups = (['metrics', 'parameters'] as const).map((group) => this.#group(group, choices));
    this.#list.replaceChildren(...groups.filter((group) => group.childElementCount > 1));
    if (focused) this.#list.querySelector<HTMLElement>(`[name="${CSS.escape(focused)}"]`)?.focus();
  }

  #group(group: Choice['group'], choices: Choice[]): HTMLElement {
    const boxes = choices
      .filter((choice) => choice.group === group)
      .map(({ column, shown }) => {
        const onchange = (): void => {
          const columns = new Map(this.session.choices.columns).set(column.key, !shown);
          this.session.choose({ columns });
        };
        const box = h('input', { type: 'checkbox', name: column.key, onchange });
        box.checked = shown;
        return h('label', {}, box, column.head);
      });
    const { trans } = this.session;
    const title = group === 'metrics' ? trans.__('Metrics') : trans.__('Parameters');
    return h('fieldset', {}, h('legend', {}, title), ...boxes);
  }
}

/** What trials warn of, such as reports that were refused. */

import { h } from './dom';
import type { Session } from './session';

export class Warnings {
  readonly root = h('ul', { class: 'at-warnings', 'aria-label': 'Warnings', hidden: true });
  #shown = '';

  constructor(readonly session: Session) {}

  update(): void {
    const { warnings } = this.session;
    const shown = warnings.join('\n');
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.root.hidden = warnings.length === 0;
    this.root.replaceChildren(...warnings.map((text) => h('li', {}, text)));
  }
}

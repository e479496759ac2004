/** What trials warn of, such as reports that were refused. */

import { h, setAttribute } from './dom';
import type { Session } from './session';

export class Warnings {
  readonly root = h('ul', { class: 'at-warnings', hidden: true });
  #shown = '';

  constructor(readonly session: Session) {
    setAttribute(this.root, 'aria-label', session.trans.__('Warnings'));
  }

  update(): void {
    const { warnings } = this.session;
    const shown = warnings.join('\n');
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.root.hidden = warnings.length === 0;
    this.root.replaceChildren(...warnings.map((text) => h('li', {}, text)));
  }
}

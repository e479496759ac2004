/** The newest pictures that trials keep, of the chosen trial or of all. */

import { h, setText } from './dom';
import type { PictureName } from './frames';
import type { Session } from './session';

const MOST_SHOWN = 12;

/** The newest pictures: of the chosen trial, else of all. */
export class PicturePanel {
  readonly #title = h('span');
  readonly #list = h('div', { class: 'at-pictures' });
  readonly root = h(
    'details',
    { class: 'at-details', open: true, hidden: true },
    h('summary', {}, this.#title),
    this.#list,
  );
  #shown = '';

  constructor(readonly session: Session) {
    this.root.addEventListener('toggle', () => {
      this.update();
    });
  }

  update(): void {
    const { pictures, choices, trans } = this.session;
    const of = pictures.names.filter(([trial]) => choices.trial === undefined || trial === choices.trial);
    this.root.hidden = of.length === 0;
    if (of.length === 0) return;
    const shown = of.slice(-MOST_SHOWN).reverse();
    const title =
      choices.trial === undefined ? trans.__('Pictures') : trans.__('Pictures of trial %1', choices.trial);
    const more = trans.__('the newest %1 of %2', shown.length, of.length);
    setText(this.#title, of.length > shown.length ? `${title}, ${more}` : title);
    const state = `${pictures.version} ${choices.trial ?? ''} ${this.root.open}`;
    if (!this.root.open || state === this.#shown) return;
    this.#shown = state;
    this.#list.replaceChildren(...shown.map((picture) => this.#figure(picture)));
  }

  #figure(picture: PictureName): HTMLElement {
    const [trial, , , step] = picture;
    const { pictures, trans } = this.session;
    const title = step === null ? trans.__('Trial %1', trial) : trans.__('Trial %1, step %2', trial, step);
    const source = pictures.source(picture);
    const missing = source === undefined ? trans.__('Loading…') : trans.__('No longer available.');
    const image = source
      ? h('img', { src: source, alt: trans.__('Picture: %1', title), class: 'at-picture' })
      : h('p', { class: 'at-soft' }, missing);
    return h('figure', {}, image, h('figcaption', { class: 'at-soft' }, title));
  }
}

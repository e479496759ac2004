/** Pictures that trials keep: named in frames, fetched from the kernel when they are in view. */

import { h, setText } from './dom';
import type { Session } from './session';

/** trial, attempt, name, step */
export type PictureName = [number, number, string, number | null];

export interface PictureMessage {
  kind: 'picture';
  trial: number;
  attempt: number;
  name: string;
  type: string;
}

const MOST_SHOWN = 12;
const MOST_KEPT = 48;
const TYPES = new Set(['image/png', 'image/jpeg', 'image/svg+xml']);

/** The names of one experiment's pictures, and the bytes of the requested ones. */
export class PictureStore {
  names: PictureName[] = [];
  /** Grows with each change. */
  version = 0;
  readonly #sources = new Map<string, string>();
  readonly #requested = new Set<string>();

  constructor(readonly send: (content: unknown) => void) {}

  take(names: PictureName[]): void {
    this.names = names;
    this.version += 1;
  }

  /** The picture as the source of an image; requests it when it is missing. */
  source(picture: PictureName): string | undefined {
    const [trial, attempt, name] = picture;
    const key = keyOf(trial, attempt, name);
    if (!this.#sources.has(key) && !this.#requested.has(key)) {
      this.#requested.add(key);
      this.send({ kind: 'picture', trial, attempt, name });
    }
    return this.#sources.get(key);
  }

  async receive(message: PictureMessage, bytes: DataView | undefined): Promise<void> {
    const key = keyOf(message.trial, message.attempt, message.name);
    const isImage = TYPES.has(message.type) && bytes !== undefined && bytes.byteLength > 0;
    const source = isImage ? await dataUri(bytes, message.type) : '';
    this.#sources.set(key, source);
    for (const old of [...this.#sources.keys()].slice(0, -MOST_KEPT)) {
      this.#sources.delete(old);
      this.#requested.delete(old);
    }
    this.version += 1;
  }
}

/** A data URI: as an image, or opened by itself, it can run no script of a trial's in the notebook's place. */
function dataUri(bytes: DataView, type: string): Promise<string> {
  const copy = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => {
      resolve(typeof reader.result === 'string' ? reader.result : '');
    };
    reader.onerror = () => {
      resolve('');
    };
    reader.readAsDataURL(new Blob([copy], { type }));
  });
}

function keyOf(trial: number, attempt: number, name: string): string {
  return `${trial} ${attempt} ${name}`;
}

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

/** Pictures that trials keep: named in frames, fetched from the kernel when they are in view. */

import type { PictureMessage, PictureName } from './frames';

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

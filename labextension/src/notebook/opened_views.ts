/** Which views of kernels can be shown: those whose models have been opened since their notebook was. */

import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { VIEW_OPENED } from '../../widgets/lib/opened';

export class OpenedViews {
  readonly #openedMs = new Map<string, number>();
  /** When a notebook was opened, by its registry of renderers. */
  readonly #sinceMs = new WeakMap<object, number>();
  readonly #signal = new Signal<this, string>(this);

  constructor(target: EventTarget = document) {
    target.addEventListener(VIEW_OPENED, (event) => {
      const { detail } = event as CustomEvent<unknown>;
      if (typeof detail !== 'string') return;
      this.#openedMs.set(detail, performance.now());
      this.#signal.emit(detail);
    });
  }

  /** Tells the id of a view that has been opened. */
  get opened(): ISignal<this, string> {
    return this.#signal;
  }

  /** From now on this notebook shows views: the models of those before are not its own. */
  begin(rendermime: object): void {
    this.#sinceMs.set(rendermime, performance.now());
  }

  has(id: string, rendermime: object): boolean {
    const openedMs = this.#openedMs.get(id);
    return openedMs !== undefined && openedMs >= (this.#sinceMs.get(rendermime) ?? 0);
  }
}

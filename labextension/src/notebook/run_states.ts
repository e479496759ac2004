/** The present states of the experiments that cells show, asked one by one and again when they change. */

import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { showExperiment } from '../api/experiment';
import type { Experiment } from '../api/experiments';
import { isGone } from '../api/request';
import type { ChangeMessage, Changes, Following } from '../home/changes';
import { Refresher } from '../home/refresher';

export class RunStates {
  readonly #runs = new Map<string, Experiment>();
  readonly #watched = new Map<string, number>();
  /** Not loaded since they have changed; those that cannot be loaded stay in it. */
  readonly #due = new Set<string>();
  readonly #refresher = new Refresher(() => this.#loadDue());
  readonly #signal = new Signal<this, string>(this);
  #following: Following | null = null;

  constructor(
    private readonly changes: Changes,
    private readonly load: (id: string) => Promise<Experiment> = showExperiment,
  ) {}

  /** Tells the id of a run whose state was asked. */
  get changed(): ISignal<this, string> {
    return this.#signal;
  }

  /** The run as the server knows it; undefined before it has answered, and where it knows none. */
  get(id: string): Experiment | undefined {
    return this.#runs.get(id);
  }

  /** Follow a run until `unwatch`; each call counts. */
  watch(id: string): void {
    this.#watched.set(id, (this.#watched.get(id) ?? 0) + 1);
    this.#follow();
    if (!this.#runs.has(id)) this.#ask([id]);
  }

  unwatch(id: string): void {
    const left = (this.#watched.get(id) ?? 1) - 1;
    if (left > 0) this.#watched.set(id, left);
    else this.#watched.delete(id);
    if (this.#watched.size > 0) return;
    this.#refresher.stop();
    this.#following?.dispose();
    this.#following = null;
    this.#due.clear();
    this.#runs.clear(); // nothing tells any more when they change
  }

  #follow(): void {
    if (this.#following) return;
    this.#refresher.start();
    this.#following = this.changes.follow({
      onMessage: (message) => {
        this.#take(message);
      },
      onConnection: (isConnected) => {
        if (isConnected && this.#due.size > 0) this.#refresher.soon(0);
      },
    });
  }

  #take(message: ChangeMessage): void {
    const states = message.changes.filter(({ kind }) => kind === 'state');
    const ids = message.reset ? this.#watched.keys() : states.map(({ experiment }) => experiment);
    this.#ask([...ids].filter((id) => this.#watched.has(id)));
  }

  #ask(ids: string[]): void {
    for (const id of ids) this.#due.add(id);
    if (ids.length > 0) this.#refresher.soon(0);
  }

  #askAgain(id: string): void {
    this.#due.add(id);
    this.#refresher.retry();
  }

  async #loadDue(): Promise<void> {
    await this.#following?.ready;
    const due = [...this.#due];
    this.#due.clear(); // a change while one is loaded makes it due again
    for (const id of due) if (this.#watched.has(id)) await this.#loadOne(id);
  }

  async #loadOne(id: string): Promise<void> {
    try {
      const run = await this.load(id);
      if (this.#watched.has(id)) this.#runs.set(id, run);
    } catch (error) {
      this.#runs.delete(id); // deleted, or no server: the notebook's own state is shown
      if (!isGone(error)) this.#askAgain(id);
    }
    this.#signal.emit(id);
  }
}

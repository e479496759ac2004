/** The present states of the experiments that cells show, asked one by one and again when they change. */

import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { showExperiment } from '../api/experiment';
import type { Experiment } from '../api/experiments';
import type { ChangeMessage, Changes, Following } from '../home/changes';

export class RunStates {
  readonly #runs = new Map<string, Experiment>();
  readonly #watched = new Map<string, number>();
  readonly #due = new Set<string>();
  readonly #signal = new Signal<this, string>(this);
  #following: Following | null = null;
  #isLoading = false;

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
    this.#following ??= this.changes.follow({
      onMessage: (message) => {
        this.#take(message);
      },
    });
    if (!this.#runs.has(id)) this.#ask([id]);
  }

  unwatch(id: string): void {
    const left = (this.#watched.get(id) ?? 1) - 1;
    if (left > 0) this.#watched.set(id, left);
    else this.#watched.delete(id);
    if (this.#watched.size > 0) return;
    this.#following?.dispose();
    this.#following = null;
    this.#runs.clear(); // nothing tells any more when they change
  }

  #take(message: ChangeMessage): void {
    const states = message.changes.filter(({ kind }) => kind === 'state');
    const ids = message.reset ? this.#watched.keys() : states.map(({ experiment }) => experiment);
    this.#ask([...ids].filter((id) => this.#watched.has(id)));
  }

  #ask(ids: string[]): void {
    for (const id of ids) this.#due.add(id);
    if (!this.#isLoading) void this.#loadDue();
  }

  async #loadDue(): Promise<void> {
    this.#isLoading = true;
    await this.#following?.ready;
    for (const id of this.#due) {
      this.#due.delete(id); // a change while it is loaded makes it due again
      if (this.#watched.has(id)) await this.#loadOne(id);
    }
    this.#isLoading = false;
  }

  async #loadOne(id: string): Promise<void> {
    try {
      const run = await this.load(id);
      if (this.#watched.has(id)) this.#runs.set(id, run);
    } catch {
      this.#runs.delete(id); // deleted, or no server: the notebook's own state is shown
    }
    this.#signal.emit(id);
  }
}

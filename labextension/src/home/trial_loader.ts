/** Loads the trials of one experiment: all of them once, then only those that can have changed. */

import { listTrials } from '../api/experiment';
import type { TrialRow } from '../api/experiment';

export class TrialLoader {
  #rows = new Map<number, TrialRow>();
  #lastStateChange = 0;

  constructor(private readonly ask = listTrials) {}

  /** The next load asks for all: what is known may be of another store. */
  forget(): void {
    this.#lastStateChange = 0;
  }

  /** The rows that are others than before; the wait for the answer is the only one. */
  async load(id: string): Promise<TrialRow[]> {
    const since = this.#lastStateChange;
    const { trials, lastStateChange } = await this.ask(id, since);
    const known = this.#rows;
    if (since === 0) this.#rows = new Map();
    const changed = trials.filter((row) => !isEqual(row, known.get(row.number)));
    for (const row of trials) this.#rows.set(row.number, row);
    this.#lastStateChange = lastStateChange;
    return changed;
  }

  /** In order of their numbers. */
  rows(): TrialRow[] {
    return [...this.#rows.values()].sort((a, b) => a.number - b.number);
  }
}

function isEqual(row: TrialRow, known: TrialRow | undefined): boolean {
  return known !== undefined && JSON.stringify(row) === JSON.stringify(known);
}

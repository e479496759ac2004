/** Loads the trials of one experiment: all of them once, then only those that can have changed. */

import { listTrials } from '../api/experiment';
import type { TrialRow } from '../api/experiment';

export class TrialLoader {
  readonly #rows = new Map<number, TrialRow>();
  #lastStateChange = 0;

  constructor(private readonly ask = listTrials) {}

  /** The next load asks for all: what is known may be of another store. */
  forget(): void {
    this.#lastStateChange = 0;
  }

  /** Page after page, the rows that are others than before. */
  async *load(id: string): AsyncGenerator<TrialRow[]> {
    const since = this.#lastStateChange;
    const gone = new Set(since === 0 ? this.#rows.keys() : []);
    for await (const { trials, lastStateChange, isLast } of this.ask(id, since)) {
      const changed = trials.filter((row) => !isEqual(row, this.#rows.get(row.number)));
      for (const row of trials) {
        this.#rows.set(row.number, row);
        gone.delete(row.number);
      }
      if (isLast) {
        for (const number of gone) this.#rows.delete(number);
        this.#lastStateChange = lastStateChange;
      }
      yield changed;
    }
  }

  /** In order of their numbers. */
  rows(): TrialRow[] {
    return [...this.#rows.values()].sort((a, b) => a.number - b.number);
  }
}

function isEqual(row: TrialRow, known: TrialRow | undefined): boolean {
  return known !== undefined && JSON.stringify(row) === JSON.stringify(known);
}

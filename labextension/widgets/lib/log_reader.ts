/** The log that a session shows: the end of it as it grows, or a match of what is looked for in all of it. */

import type { Choices } from './choices';
import { download } from './download';
import type { LogChoice, LogFile, LogMatch, LogTail, Trial } from './frames';

/** The part of a session that its log needs. */
interface Owner {
  readonly choices: Choices;
  readonly wire: { send(content: unknown): void };
  choose(choices: Partial<Choices>): void;
  focus(): Trial | undefined;
}

export class LogReader {
  tail: LogTail | undefined;
  /** What a search has found; undefined where nothing is looked for, and until it is found. */
  match: LogMatch | undefined;
  /** Why the log could not be given as a file. */
  note = '';
  #key = '';

  constructor(private readonly session: Owner) {}

  /** The log that is shown; undefined before a trial has begun. */
  choice(): LogChoice | undefined {
    const { attempt, stream, rank } = this.session.choices;
    const trial = this.session.focus();
    return trial && { trial: trial.number, attempt, stream, rank };
  }

  /** Ask for it, once, and again when its trial begins anew. */
  ask(): void {
    const choice = this.choice();
    const key = JSON.stringify([choice, this.session.focus()?.attempt]);
    if (!choice || key === this.#key) return;
    this.#key = key;
    this.tail = undefined;
    this.note = '';
    this.session.wire.send({ kind: 'log', ...choice });
    this.find(this.session.choices.query);
  }

  /** Look for a text in all of it; "" ends that. @param match Which match, from 1 on. */
  find(query: string, match = 1): void {
    const choice = this.choice();
    if (query !== this.match?.query) this.match = undefined;
    this.session.choose({ query });
    if (choice && query) this.session.wire.send({ kind: 'search', ...choice, query, match });
  }

  /** Show the match that is so many after the one that is shown; after the last comes the first. */
  step(by: number): void {
    if (!this.match?.total) return;
    const { query, match, total } = this.match;
    this.find(query, ((match - 1 + by + total) % total) + 1);
  }

  /** Give all of it to the browser's downloads. */
  save(): void {
    const choice = this.choice();
    if (choice) this.session.wire.send({ kind: 'download', ...choice });
  }

  take(message: ({ kind: 'log' } & LogTail) | ({ kind: 'found' } & LogMatch)): void {
    if (!this.#isOf(message)) return;
    if (message.kind === 'log') this.tail = message;
    else if (message.query === this.session.choices.query) this.match = message;
  }

  takeFile(file: LogFile, bytes: DataView | undefined): void {
    if (this.#isOf(file)) this.note = file.text;
    if (bytes && !file.text) download(file.name, new Blob([bytes]));
  }

  #isOf({ trial, attempt, stream, rank }: LogChoice): boolean {
    return JSON.stringify({ trial, attempt, stream, rank }) === JSON.stringify(this.choice());
  }
}

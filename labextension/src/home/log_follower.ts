/** Follows what one trial prints, by byte offsets, and gives its last lines. */

import type { LogChoice, LogTail } from '../../widgets/lib/frames';
import { bytes } from '../../widgets/plan/format';
import type { LogQuery, LogWindow } from '../api/experiment';
import { isGone } from '../api/request';

const PERIOD_MS = 1000;
const MOST_LINES = 200;
const MOST_CHARACTERS = 65_536;
// eslint-disable-next-line no-control-regex -- the escape character is what is matched
const OTHER_SEQUENCES = /\x1b\[[0-?]*[ -/]*[@-ln-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-Z\\^-~]/g;

export class LogFollower {
  #choice: LogChoice | undefined;
  #text = '';
  #window: LogWindow | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Grows with each choice and stop: answers to older requests are dropped. */
  #version = 0;

  constructor(
    private readonly ask: (query: LogQuery) => Promise<LogWindow>,
    private readonly tell: (tail: LogTail) => void,
  ) {}

  /** Follow this log, from its end on, and no other. */
  follow(choice: LogChoice): void {
    this.stop();
    this.#choice = choice;
    this.#text = '';
    this.#window = undefined;
    this.go();
  }

  /** Go on where it stopped. */
  go(): void {
    this.stop();
    if (this.#choice) void this.#read(this.#choice, this.#version);
  }

  stop(): void {
    this.#version += 1;
    clearTimeout(this.#timer);
  }

  async #read(choice: LogChoice, version: number): Promise<void> {
    let isOver = false;
    try {
      const window = await this.ask({ ...choice, beginBytes: this.#window?.end_bytes });
      if (version !== this.#version) return;
      this.#take(choice, window);
      isOver = window.final && window.end_bytes >= window.size_bytes;
    } catch (error) {
      if (version !== this.#version) return;
      isOver = isGone(error);
      this.#tellFailure(choice, error);
    }
    if (isOver) return;
    this.#timer = setTimeout(() => void this.#read(choice, version), PERIOD_MS);
  }

  /** What was read stays. */
  #tellFailure(choice: LogChoice, error: unknown): void {
    if (this.#window) return;
    this.tell({ ...choice, text: error instanceof Error ? error.message : '', left_out: '', bytes: 0 });
  }

  #take(choice: LogChoice, window: LogWindow): void {
    const before = this.#window;
    this.#window = window;
    // Another attempt, or a file that was cut: what was read is of another text.
    const isOther = before && (before.attempt !== window.attempt || window.begin_bytes !== before.end_bytes);
    if (isOther) this.#text = '';
    if (before && !isOther && window.text === '') return;
    this.#text = lastLines(this.#text + window.text);
    const shown = terminalText(this.#text);
    const leftOut = window.end_bytes - new TextEncoder().encode(this.#text).length;
    this.tell({
      ...choice,
      text: shown,
      left_out: leftOut > 0 ? bytes(leftOut) : '',
      bytes: window.size_bytes,
    });
  }
}

/** The last 200 lines, and of these the last 64 k characters. */
export function lastLines(text: string): string {
  const cut = text.slice(-MOST_CHARACTERS);
  const lines = cut.split('\n');
  const extra = cut.endsWith('\n') ? 1 : 0;
  return lines.slice(-(MOST_LINES + extra)).join('\n');
}

/** What a terminal leaves of each line: the last text that was written over it, with no sequences but those of colours. */
export function terminalText(text: string): string {
  return text
    .split('\n')
    .map((line) => line.replace(OTHER_SEQUENCES, '').split('\r').filter(Boolean).at(-1) ?? '')
    .join('\n');
}

/** Runs a task again when it is wanted, never twice at once, and rests the longer the longer it takes. */

/** The task takes at most one part in this many of the time. */
const SHARE = 4;

export class Refresher {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isRunning = false;
  #dueMs = Infinity;
  #begunMs = -Infinity;
  #tookMs = 0;

  /** @param task Handles its own failures. */
  constructor(private readonly task: () => Promise<void>) {}

  /** Run it, at least `afterMs` after it began the last time; what is wanted until then is done in one run. */
  soon(afterMs: number): void {
    const dueMs = Math.max(this.#begunMs + afterMs, performance.now());
    if (dueMs >= this.#dueMs) return;
    this.#dueMs = dueMs;
    if (!this.#isRunning) this.#wait();
  }

  /** Take back what is wanted; a run that has begun goes on. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#dueMs = Infinity;
  }

  #wait(): void {
    clearTimeout(this.#timer);
    const restedMs = this.#begunMs + this.#tookMs * SHARE;
    this.#timer = setTimeout(
      () => {
        void this.#run();
      },
      Math.max(this.#dueMs, restedMs) - performance.now(),
    );
  }

  async #run(): Promise<void> {
    this.#dueMs = Infinity;
    this.#isRunning = true;
    this.#begunMs = performance.now();
    await this.task();
    this.#tookMs = performance.now() - this.#begunMs;
    this.#isRunning = false;
    if (this.#dueMs < Infinity) this.#wait();
  }
}

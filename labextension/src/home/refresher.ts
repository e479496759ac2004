/** Runs a task again when it is wanted, never twice at once, and rests the longer the longer it takes, up to a limit. */

/** The task takes at most one part in this many of the time. */
const SHARE = 4;
const LONGEST_REST_MS = 10_000;
const AFTER_FAILURE_MS = 5000;

export class Refresher {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isRunning = false;
  #isStopped = true;
  #dueMs = Infinity;
  #begunMs = -Infinity;
  #tookMs = 0;

  /** It is stopped at first. @param task Handles its own failures. */
  constructor(private readonly task: () => Promise<void>) {}

  /** From now on it is run where it is wanted. */
  start(): void {
    this.#isStopped = false;
  }

  /** Run it, at least `afterMs` after it began the last time; what is wanted until then is done in one run. */
  soon(afterMs: number): void {
    this.#want(Math.max(this.#begunMs + afterMs, performance.now()));
  }

  /** Run it again some seconds from now, because it has failed. */
  retry(): void {
    this.#want(performance.now() + AFTER_FAILURE_MS);
  }

  /** Take back what is wanted, and take no more; a run that has begun goes on. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#dueMs = Infinity;
  }

  #want(dueMs: number): void {
    if (this.#isStopped || dueMs >= this.#dueMs) return;
    this.#dueMs = dueMs;
    if (!this.#isRunning) this.#wait();
  }

  #wait(): void {
    clearTimeout(this.#timer);
    const restedMs = this.#begunMs + Math.min(this.#tookMs * SHARE, this.#tookMs + LONGEST_REST_MS);
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

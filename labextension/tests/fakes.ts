/** Stand-ins for what a browser has and node has not. */

import type { ChangeMessage, Changes, Follower, Following } from '../src/home/changes';

/** Timers that pass, and time that goes on, when the test says so. */
export class Clock {
  nowMs = 0;
  #next = 1;
  readonly #timers = new Map<number, { call: () => void; afterMs: number }>();

  readonly setTimeout = (call: () => void, afterMs: number): number => {
    this.#timers.set(this.#next, { call, afterMs });
    return this.#next++;
  };

  readonly clearTimeout = (id: number): void => {
    this.#timers.delete(id);
  };

  /** Be the clock and the timers of the code under test. */
  install(): void {
    const { setTimeout, clearTimeout } = this;
    const performance = { now: () => this.nowMs };
    Object.assign(globalThis, { window: this, setTimeout, clearTimeout });
    Object.defineProperty(globalThis, 'performance', { value: performance, configurable: true });
  }

  get waiting(): number {
    return this.#timers.size;
  }

  /** Let all that waits come; gives the longest time that one of them would have waited. */
  passAll(): number {
    const due = [...this.#timers.values()];
    this.#timers.clear();
    const longestMs = Math.max(0, ...due.map(({ afterMs }) => afterMs));
    this.nowMs += longestMs;
    for (const { call } of due) call();
    return longestMs;
  }
}

/** A WebSocket whose other end is the test. */
export class FakeSocket {
  static opened: FakeSocket[] = [];
  onopen?: () => void;
  onmessage?: (event: { data: string }) => void;
  onclose?: () => void;
  isClosed = false;

  constructor(readonly url: string) {
    FakeSocket.opened.push(this);
  }

  static newest(): FakeSocket {
    const found = this.opened.at(-1);
    if (!found) throw new Error('no socket has been opened');
    return found;
  }

  open(): void {
    this.onopen?.();
  }

  tell(message: ChangeMessage): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  lose(): void {
    this.onclose?.();
  }

  close(): void {
    this.isClosed = true;
  }
}

/** The changes of a home, told by the test. */
export class FakeChanges implements Changes {
  readonly followers = new Set<Follower>();
  #isConnected: boolean | undefined;

  follow(follower: Follower): Following {
    this.followers.add(follower);
    if (this.#isConnected !== undefined) follower.onConnection?.(this.#isConnected);
    return {
      ready: Promise.resolve(),
      isDisposed: false,
      dispose: () => {
        this.followers.delete(follower);
      },
    };
  }

  tell(message: Partial<ChangeMessage>): void {
    for (const follower of this.followers)
      follower.onMessage({ changes: [], last_id: 1, reset: false, ...message });
  }

  connect(isConnected: boolean): void {
    this.#isConnected = isConnected;
    for (const follower of this.followers) follower.onConnection?.(isConnected);
  }
}

/** Let all that is promised already come. */
export async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

/** The one socket of changes of a page, shared by all that follow the home. */

import { Token } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import { changesUrl } from '../api/request';

export interface Change {
  id: number;
  experiment: string;
  kind: 'state' | 'metrics' | 'notes';
}

export interface ChangeMessage {
  changes: Change[];
  last_id: number;
  /** Too many changes, or another store: everything has to be loaded again. */
  reset: boolean;
  manager?: { alive: boolean };
}

export interface Follower {
  onMessage(message: ChangeMessage): void;
  onConnection?(isConnected: boolean): void;
}

export interface Following extends IDisposable {
  /** Whoever loads after this misses no change: it is in what was loaded, or told. */
  readonly ready: Promise<void>;
}

export interface Changes {
  /** Tell of changes from now on, and of the connection as it is; the socket is open as long as anybody follows. */
  follow(follower: Follower): Following;
}

export const IChanges = new Token<Changes>('jupyter-autotrain:IChanges', 'The changes of the home.');

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 4_000; // after a restart of the server, people look at the page

/** Reconnects where it was, so no change is missed and none comes twice. */
export class ChangeHub implements Changes {
  readonly #followers = new Set<Follower>();
  #socket: WebSocket | null = null;
  #ready = Promise.resolve();
  #since: number | undefined;
  #timer = 0;
  #pauseMs = FIRST_PAUSE_MS;
  /** Undefined while the first try is under way. */
  #isConnected: boolean | undefined;

  follow(follower: Follower): Following {
    if (this.#followers.size === 0) this.#begin();
    this.#followers.add(follower);
    if (this.#isConnected !== undefined) follower.onConnection?.(this.#isConnected);
    return {
      ready: this.#ready,
      isDisposed: false,
      dispose: () => {
        if (this.#followers.delete(follower) && this.#followers.size === 0) this.#end();
      },
    };
  }

  #begin(): void {
    this.#since = undefined;
    this.#isConnected = undefined;
    this.#ready = new Promise((resolve) => {
      this.#connect(resolve);
    });
  }

  #end(): void {
    window.clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  /** `settled` is called when this try has succeeded or failed. */
  #connect(settled?: () => void): void {
    const socket = new WebSocket(changesUrl(this.#since));
    const isAgain = settled === undefined;
    this.#socket = socket;
    socket.onopen = () => {
      this.#pauseMs = FIRST_PAUSE_MS;
      settled?.();
      this.#tellConnection(true);
      // No message has come yet that says where this page was: what changed since it loaded is unknown.
      if (isAgain && this.#since === undefined) this.#tell({ changes: [], last_id: 0, reset: true });
    };
    socket.onmessage = (event: MessageEvent<string>) => {
      if (socket !== this.#socket) return;
      const message = JSON.parse(event.data) as ChangeMessage;
      this.#since = message.last_id;
      this.#tell(message);
    };
    socket.onclose = () => {
      settled?.();
      if (socket === this.#socket) this.#reconnect();
    };
  }

  #tell(message: ChangeMessage): void {
    for (const follower of this.#followers) follower.onMessage(message);
  }

  #tellConnection(isConnected: boolean): void {
    this.#isConnected = isConnected;
    for (const follower of this.#followers) follower.onConnection?.(isConnected);
  }

  #reconnect(): void {
    this.#tellConnection(false);
    this.#timer = window.setTimeout(() => {
      this.#connect();
    }, this.#pauseMs);
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
  }
}

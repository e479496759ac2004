/** Follows the socket of changes; reconnects where it was, so no change is missed and none comes twice. */

import { changesUrl } from './api';

export interface Change {
  id: number;
  experiment: string;
  kind: 'state' | 'metrics' | 'notes';
}

export interface ChangeMessage {
  changes: Change[];
  last_id: number;
  reset: boolean;
  manager?: { alive: boolean };
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

export class ChangeSocket {
  private socket: WebSocket | null = null;
  private timer = 0;
  private pauseMs = FIRST_PAUSE_MS;
  private isDisposed = false;

  /** `since` is the id up to which all is known; `onConnection` is told of each connection and of its loss. */
  constructor(
    private since: number,
    private readonly onMessage: (message: ChangeMessage) => void,
    private readonly onConnection: (isConnected: boolean) => void,
  ) {
    this.connect();
  }

  dispose(): void {
    this.isDisposed = true;
    window.clearTimeout(this.timer);
    this.socket?.close();
  }

  private connect(): void {
    const socket = new WebSocket(changesUrl(this.since));
    this.socket = socket;
    socket.onopen = () => {
      this.pauseMs = FIRST_PAUSE_MS;
      this.onConnection(true);
    };
    socket.onmessage = (event: MessageEvent<string>) => {
      const message = JSON.parse(event.data) as ChangeMessage;
      this.since = message.last_id;
      this.onMessage(message);
    };
    socket.onclose = () => {
      this.reconnect();
    };
  }

  private reconnect(): void {
    if (this.isDisposed) return;
    this.onConnection(false);
    this.timer = window.setTimeout(() => {
      this.connect();
    }, this.pauseMs);
    this.pauseMs = Math.min(2 * this.pauseMs, LONGEST_PAUSE_MS);
  }
}

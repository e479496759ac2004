/** The list that the sidebar shows: loaded over REST, and again when the socket tells of a change. */

import { ModelSignal } from '../home/model_signal';
import type { CountedSignal } from '../home/model_signal';
import { listExperiments } from '../api/experiments';
import type { ExperimentList, ListQuery } from '../api/experiments';
import type { ChangeMessage, Changes, Following } from '../home/changes';
import { Refresher } from '../home/refresher';

/** What the server gives at once. */
export const MOST_LISTED = 200;
const PAGE = 50;
const AFTER_STATE_MS = 100; // between two loads: what changes meanwhile is in one
const AFTER_METRICS_MS = 1000;

export class ListModel {
  list: ExperimentList | null = null;
  error = '';
  isConnected = true;
  query: ListQuery = {
    text: '',
    tag: '',
    sort: 'created',
    order: 'descending',
    grouping: 'state',
    limit: PAGE,
  };

  private readonly signal = new ModelSignal(this);
  private readonly refresher = new Refresher(() => this.load());
  private following: Following | null = null;
  private version = 0;
  private loadedMs = 0;

  constructor(private readonly changes: Changes) {}

  get changed(): CountedSignal {
    return this.signal;
  }

  /** Load, and follow; does nothing where it follows already. */
  async follow(): Promise<void> {
    if (this.following) return;
    this.refresher.start();
    this.following = this.changes.follow({
      onMessage: (message) => {
        this.take(message);
      },
      onConnection: (isConnected) => {
        this.isConnected = isConnected;
        if (isConnected && this.error) this.refresher.soon(0);
        this.signal.emit();
      },
    });
    await this.following.ready;
    this.refresher.soon(0);
  }

  /** Stop to follow, as where the sidebar is hidden. */
  rest(): void {
    this.refresher.stop();
    this.following?.dispose();
    this.following = null;
  }

  /** Ask for something else; it is loaded now, or when the list is shown. */
  ask(query: Partial<ListQuery>): void {
    this.query = { ...this.query, ...query };
    this.signal.emit();
    if (this.following) void this.load();
  }

  /** The server's clock, seconds since the epoch; browsers on other machines may be off. */
  now_s(): number {
    return (this.list?.now_s ?? 0) + (performance.now() - this.loadedMs) / 1000;
  }

  more(): void {
    this.ask({ limit: Math.min(this.query.limit + PAGE, MOST_LISTED) });
  }

  private take(message: ChangeMessage): void {
    if (message.manager && this.list) {
      this.list = { ...this.list, manager: message.manager };
      this.signal.emit();
    }
    if (message.reset || message.changes.some((change) => change.kind === 'state'))
      this.refresher.soon(AFTER_STATE_MS);
    else if (message.changes.some((change) => change.kind === 'metrics'))
      this.refresher.soon(AFTER_METRICS_MS);
  }

  private async load(): Promise<void> {
    const version = ++this.version;
    try {
      const list = await listExperiments(this.query);
      if (version !== this.version) return; // a later request has overtaken it
      this.list = list;
      this.loadedMs = performance.now();
      this.error = '';
    } catch (error) {
      if (version !== this.version) return;
      this.refresher.retry();
      this.error = error instanceof Error ? error.message : String(error);
    }
    this.signal.emit();
  }
}

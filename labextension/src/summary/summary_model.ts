/** How many experiments run and wait, and which have ended while this page was open. */

import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { listExperiments } from '../api/experiments';
import type { Experiment, Group } from '../api/experiments';
import type { Changes, Following } from '../home/changes';
import { Refresher } from '../home/refresher';

const NEWEST = { text: '', tag: '', group: 'done', sort: 'ended', order: 'descending', limit: 20 } as const;
const PAUSE_MS = 1000; // between two requests: what changes meanwhile is in one

export class SummaryModel {
  groups: Record<Group, number> = { running: 0, queued: 0, done: 0 };

  private readonly signal = new Signal<this, void>(this);
  private readonly endedSignal = new Signal<this, Experiment[]>(this);
  private readonly refresher = new Refresher(() => this.load());
  private following: Following | null = null;
  /** What ended before the page opened is not told: the server's clock at the newest such end, then what was told. */
  private openedAtS: number | null = null;
  private readonly told = new Set<string>();
  private hasFailed = false;

  constructor(private readonly changes: Changes) {}

  get changed(): ISignal<this, void> {
    return this.signal;
  }

  /** Experiments that have ended since the last time, the newest first. */
  get ended(): ISignal<this, Experiment[]> {
    return this.endedSignal;
  }

  async follow(): Promise<void> {
    if (this.following) return;
    this.refresher.start();
    this.following = this.changes.follow({
      onMessage: (message) => {
        if (message.reset || message.changes.some((change) => change.kind === 'state'))
          this.refresher.soon(PAUSE_MS);
      },
      onConnection: (isConnected) => {
        if (isConnected && this.hasFailed) this.refresher.soon(0);
      },
    });
    await this.following.ready;
    this.refresher.soon(0);
  }

  rest(): void {
    this.refresher.stop();
    this.following?.dispose();
    this.following = null;
  }

  private async load(): Promise<void> {
    try {
      const list = await listExperiments(NEWEST);
      this.hasFailed = false;
      this.groups = list.groups;
      this.tellEnded(list.experiments);
    } catch {
      this.hasFailed = true; // the sidebar says that the server does not answer
      this.refresher.retry();
      return;
    }
    this.signal.emit();
  }

  private tellEnded(newest: Experiment[]): void {
    const openedAtS = (this.openedAtS ??= newest[0]?.ended_s ?? 0);
    const fresh = newest.filter((experiment) => {
      return (experiment.ended_s ?? 0) > openedAtS && !this.told.has(keyOf(experiment));
    });
    for (const experiment of fresh) this.told.add(keyOf(experiment));
    if (fresh.length) this.endedSignal.emit(fresh);
  }
}

/** An experiment that is tried again ends again. */
function keyOf(experiment: Experiment): string {
  return `${experiment.id} ${experiment.ended_s}`;
}

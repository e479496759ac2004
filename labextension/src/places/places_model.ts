/** What the panel of places shows: profiles at once, then what each has, and checks step by step. */

import { Signal } from '@lumino/signaling';
import { ModelSignal } from '../home/model_signal';
import type { CountedSignal } from '../home/model_signal';
import * as api from '../api/places';
import type { CheckStep, Inventory, Place, ProfileFile, Project } from '../api/places';
import { Refusal } from '../api/request';
import type { ChangeMessage, Changes, Following } from '../home/changes';
import { Refresher } from '../home/refresher';

const AT_ONCE = 2; // places whose machines are asked at the same time: others of this page wait for the server too
const POLL_MS = 500;
const AFTER_FAILURE_MS = 2000;
const AFTER_STATE_MS = 1000;
const FORBIDDEN = 403;
const SERVER_ERROR = 500;

export interface Check {
  id: string;
  state: 'running' | 'done' | 'cancelled' | 'too long' | 'failed';
  good: boolean;
  steps: CheckStep[];
  /** Why it has failed, or is not cancelled. */
  error: string;
  /** How it goes on cannot be asked now, and is asked again. */
  isLost: boolean;
}

export class PlacesModel {
  places: Place[] | null = null;
  files: ProfileFile[] = [];
  faults: string[] = [];
  /** Null where it is not told. */
  project: Project | null = null;
  error = '';
  /** False where the server's authorizer lets this user only look. */
  canWrite = true;
  readonly inventories = new Map<string, Inventory | 'asking'>();
  readonly checks = new Map<string, Check>();

  private readonly signal = new ModelSignal(this);
  private following: Following | null = null;
  private readonly refresher = new Refresher(() => (this.hasFailed ? this.refresh() : this.load()));
  private hasFailed = false;
  private waiting: string[] = [];
  private asking = 0;
  private asked = 0;
  private shown = 0;
  private isDisposed = false;
  private reviewed = '';

  constructor(private readonly changes: Changes) {}

  get changed(): CountedSignal {
    return this.signal;
  }

  /** Load, and follow what runs; does nothing where it follows already. */
  async follow(): Promise<void> {
    if (this.following) return;
    this.refresher.start();
    const following = this.changes.follow({
      onMessage: (message) => {
        this.take(message);
      },
      onConnection: (isConnected) => {
        if (isConnected && this.hasFailed) this.refresher.soon(0);
      },
    });
    this.following = following;
    await following.ready;
    if (following === this.following) await this.refresh();
  }

  /** Stop to follow, as where the panel is hidden; checks go on. */
  rest(): void {
    this.refresher.stop();
    this.following?.dispose();
    this.following = null;
    this.waiting = [];
  }

  /** Ask nothing more: checks go on where they run, and nobody looks at them here. */
  dispose(): void {
    this.isDisposed = true;
    this.rest();
    Signal.clearData(this);
  }

  /** Load everything, and ask all machines again. */
  async refresh(): Promise<void> {
    await this.load();
    if (this.hasFailed || !this.following) return;
    this.waiting = (this.places ?? []).filter((place) => !place.faults.length).map((place) => place.name);
    for (const name of this.waiting) this.inventories.set(name, 'asking');
    while (this.asking < AT_ONCE && this.waiting.length) void this.askNext();
    this.signal.emit();
  }

  async check(name: string): Promise<void> {
    const check: Check = { id: '', state: 'running', good: false, steps: [], error: '', isLost: false };
    this.checks.set(name, check);
    this.signal.emit();
    try {
      check.id = await api.beginCheck(name);
      await this.followCheck(check);
    } catch (error) {
      check.state = 'failed';
      check.error = message(error);
    }
    this.signal.emit();
  }

  async cancel(name: string): Promise<void> {
    const check = this.checks.get(name);
    if (!check?.id) return;
    check.error = '';
    try {
      await api.cancelCheck(check.id);
    } catch (error) {
      check.error = message(error);
      this.signal.emit();
    }
  }

  async remove(name: string): Promise<void> {
    try {
      await api.removeProfile(name);
      await this.load();
    } catch (error) {
      this.error = message(error);
    }
    this.signal.emit();
  }

  /** The project's file waits for its reader to look at it. */
  get needsTrust(): boolean {
    return Boolean(this.project && !this.project.is_trusted && this.project.effects.length);
  }

  /** Tell whether its reader was not yet asked about this content, and note that it is asked about now. */
  isFirstReview(digest: string): boolean {
    const isFirst = digest !== this.reviewed;
    this.reviewed = digest;
    return isFirst;
  }

  async trust(digest: string): Promise<void> {
    try {
      await api.trustProject(digest);
    } catch (error) {
      await this.load(); // it may be another file by now
      this.error = message(error);
      this.signal.emit();
      return;
    }
    await this.refresh();
  }

  private async followCheck(check: Check): Promise<void> {
    while (check.state === 'running' && !this.isDisposed) {
      await this.askSteps(check);
      this.signal.emit();
      const pauseMs = check.isLost ? AFTER_FAILURE_MS : POLL_MS;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  /** An answer that is lost, or an error of the server, says nothing of the check; a refusal does: there is none. */
  private async askSteps(check: Check): Promise<void> {
    try {
      const found = await api.followCheck(check.id, check.steps.length);
      check.steps = [...check.steps, ...found.steps];
      check.good = found.good;
      check.state = found.state;
      check.isLost = false;
    } catch (error) {
      if (error instanceof Refusal && error.status < SERVER_ERROR) throw error;
      check.isLost = true;
    }
  }

  private async askNext(): Promise<void> {
    const name = this.waiting.shift();
    if (name === undefined) return;
    this.asking += 1;
    try {
      this.inventories.set(name, await api.askInventory(name));
    } catch (error) {
      this.inventories.set(name, { usable: false, reason: message(error), inventory: null });
    }
    this.asking -= 1;
    this.signal.emit();
    await this.askNext();
  }

  private take(change: ChangeMessage): void {
    const isOfStates = change.reset || change.changes.some((one) => one.kind === 'state');
    if (isOfStates) this.refresher.soon(AFTER_STATE_MS);
  }

  private async load(): Promise<void> {
    const number = ++this.asked;
    try {
      const found = await api.listPlaces();
      if (number < this.shown) return; // a later request was answered before
      this.shown = number;
      this.places = [...named(found.backends), ...others(found.backends)];
      this.faults = found.faults;
      this.error = '';
      await this.loadFiles();
      this.hasFailed = false;
    } catch (error) {
      if (number < this.shown) return;
      this.hasFailed = true;
      this.refresher.retry();
      this.error = message(error);
    }
    this.signal.emit();
  }

  /** Only those who may change profiles are told where they are. */
  private async loadFiles(): Promise<void> {
    try {
      this.files = (await api.listProfileFiles()).files;
      this.project = await api.askProject();
      this.canWrite = true;
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== FORBIDDEN) throw error;
      this.files = [];
      this.project = null;
      this.canWrite = false;
    }
  }
}

/** Those that a file names, which come first. */
function named(places: Place[]): Place[] {
  return places.filter((place) => place.level !== 'type' || place.name === 'local');
}

function others(places: Place[]): Place[] {
  return places.filter((place) => place.level === 'type' && place.name !== 'local');
}

export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

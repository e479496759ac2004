/** What a session of one experiment draws from where there is no kernel: REST, and the socket of changes. */

import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import type { IDisposable } from '@lumino/disposable';
import { downloadFrom } from '../../widgets/lib/download';
import type { Json, LogChoice } from '../../widgets/lib/frames';
import type { Message, Session, Wire } from '../../widgets/lib/session';
import { continueFrom } from '../api/actions';
import * as api from '../api/experiment';
import type { ExperimentDetails, TrialRow } from '../api/experiment';
import { isGone, Refusal } from '../api/request';
import type { Change, ChangeMessage, Changes, Following } from './changes';
import { CurveLoader } from './curve_loader';
import type { Wanted } from './curve_loader';
import { LogFollower } from './log_follower';
import { Refresher } from './refresher';
import { experimentOf, trialOf } from './rest_frames';
import { TrialLoader } from './trial_loader';

const AFTER_STATE_MS = 100;
const AFTER_METRICS_MS = 1000;

type Handler = (content: Message, buffers: DataView[]) => void;

export interface WireOptions {
  /** Stop trials, null for all; resolves when that is kept, or taken back by who confirms it. */
  stop(trials: number[] | null): Promise<void>;
}

/** What a view asks by `Session`. */
type Asked =
  | { kind: 'attach' }
  | ({ kind: 'log' | 'download' } & LogChoice)
  | ({ kind: 'search'; query: string; match: number } & LogChoice)
  | { kind: 'picture'; trial: number; attempt: number; name: string }
  | { kind: 'stop'; trials: number[] | null }
  | { kind: 'continue'; trial: number; params: Record<string, Json> };

export class RestWire implements Wire, IDisposable {
  readonly confirmsStop = true;
  details: ExperimentDetails | undefined;
  trials: TrialRow[] = [];
  /** What the server refused last; "" where it answers. */
  error = '';
  isDeleted = false;
  isConnected = true;
  isDisposed = false;

  readonly #signal = new Signal<this, void>(this);
  readonly #handlers = new Set<Handler>();
  readonly #states = new Refresher(() => this.#guarded(() => this.#loadState()));
  readonly #curves = new Refresher(() => this.#guarded(() => this.#loadCurves()));
  readonly #notes = new Refresher(() => this.#guarded(() => this.#loadPictures()));
  readonly #refreshers = [this.#states, this.#curves, this.#notes];
  readonly #log: LogFollower;
  readonly #loader = new CurveLoader((curves) => {
    this.#emit({ kind: 'curves', ...curves });
  });
  readonly #rows = new TrialLoader();
  #following: Following | null = null;
  #wanted: Wanted = { metrics: [], trials: new Set() };
  #seq = 0;

  constructor(
    readonly id: string,
    private readonly changes: Changes,
    private readonly options: WireOptions,
  ) {
    this.#log = new LogFollower(
      (query) => api.showLog(id, query),
      (tail) => {
        this.#emit({ kind: 'log', ...tail });
      },
    );
  }

  /** Details, messages or the connection have changed. */
  get changed(): ISignal<this, void> {
    return this.#signal;
  }

  /** Load, and follow; does nothing where it follows already. */
  async follow(): Promise<void> {
    if (this.#following || this.isDisposed) return;
    for (const refresher of this.#refreshers) refresher.start();
    const following = this.changes.follow({
      onMessage: (message) => {
        this.#take(message);
      },
      onConnection: (isConnected) => {
        this.isConnected = isConnected;
        if (isConnected) this.#states.soon(0);
        this.#signal.emit();
      },
    });
    this.#following = following;
    await following.ready;
    if (following !== this.#following) return;
    this.#states.soon(0);
    this.#notes.soon(0);
    this.#log.go();
  }

  /** Stop to follow, as where it is hidden. */
  rest(): void {
    for (const refresher of this.#refreshers) refresher.stop();
    this.#log.stop();
    this.#following?.dispose();
    this.#following = null;
  }

  dispose(): void {
    this.isDisposed = true;
    this.rest();
    this.#handlers.clear();
    Signal.clearData(this);
  }

  /** Which metrics are looked at, and which trials are to have curves however many there are. */
  want(wanted: Wanted): void {
    const { trials } = this.#wanted;
    const isNewTrial = [...wanted.trials].some((trial) => !trials.has(trial) && !this.#loader.has(trial));
    const isNewMetric = wanted.metrics.some(
      (metric) => !this.#wanted.metrics.includes(metric) && !this.#loader.hasMetric(metric),
    );
    this.#wanted = wanted;
    if (isNewTrial || isNewMetric) this.#curves.soon(0);
  }

  /** As what a person looks at in a session of this wire. */
  wantSeen(session: Session): void {
    const { trial, pinned } = session.choices;
    const trials = new Set(trial === undefined ? pinned : [...pinned, trial]);
    this.want({ metrics: session.seenMetrics(), trials });
  }

  get(): unknown {
    return {};
  }

  on(_: 'msg:custom', handler: Handler): void {
    this.#handlers.add(handler);
  }

  off(_: 'msg:custom', handler: Handler): void {
    this.#handlers.delete(handler);
  }

  send(content: unknown): void {
    const asked = content as Asked;
    if (asked.kind === 'log') this.#log.follow(choiceOf(asked));
    else if (asked.kind === 'search') void this.#guarded(() => this.#search(asked));
    else if (asked.kind === 'download') downloadFrom(api.logFileUrl(this.id, choiceOf(asked)));
    else if (asked.kind === 'picture') void this.#guarded(() => this.#loadPicture(asked));
    else if (asked.kind === 'stop') void this.#told(asked.trials, this.options.stop(asked.trials));
    else if (asked.kind === 'continue') void this.#told([], continueFrom(this.id, asked.trial, asked.params));
  }

  #take(message: ChangeMessage): void {
    if (message.manager && this.details) {
      this.details = { ...this.details, manager: message.manager };
      this.#signal.emit();
    }
    if (message.reset) this.#rows.forget();
    const changed = message.changes.filter(this.#isOurs).map(({ kind }) => kind);
    const kinds = new Set(message.reset ? ['state', 'metrics', 'notes'] : changed);
    if (kinds.has('state')) this.#states.soon(AFTER_STATE_MS);
    if (kinds.has('metrics') || kinds.has('notes')) this.#states.soon(AFTER_METRICS_MS);
    if (kinds.has('notes')) this.#notes.soon(AFTER_METRICS_MS);
  }

  readonly #isOurs = (change: Change): boolean => change.experiment === this.id;

  /** The state first: where it is final, the trials and curves that are loaded after it are complete. */
  async #loadState(): Promise<void> {
    try {
      const details = await api.showExperiment(this.id);
      for await (const changed of this.#rows.load(this.id)) this.#show(details, changed);
    } catch (error) {
      this.isDeleted = isGone(error);
      throw error;
    }
  }

  #show(details: ExperimentDetails, changed: TrialRow[]): void {
    this.isDeleted = false;
    if (!this.details) this.#notes.soon(0);
    this.details = details;
    this.trials = this.#rows.rows();
    this.#seq += 1;
    const experiment = experimentOf(details, this.trials);
    const { warnings } = details;
    const frame = { seq: this.#seq, experiment, trials: changed.map(trialOf), series: [], warnings };
    this.#emit({ kind: 'frame', ...frame });
    this.#curves.soon(AFTER_METRICS_MS);
  }

  async #loadCurves(): Promise<void> {
    if (this.details) await this.#loader.load(this.details, this.trials, this.#wanted);
  }

  async #loadPictures(): Promise<void> {
    if (!this.details) return; // asked again once they are there
    const pictures = await api.listPictures(this.id);
    if (pictures.length === 0) return;
    this.#seq += 1;
    const experiment = experimentOf(this.details, this.trials);
    this.#emit({ kind: 'frame', seq: this.#seq, experiment, trials: [], series: [], pictures });
  }

  async #loadPicture({ trial, attempt, name }: Asked & { kind: 'picture' }): Promise<void> {
    const message = { kind: 'picture', trial, attempt, name } as const;
    try {
      const { type, bytes } = await api.showPicture(this.id, trial, attempt, name);
      this.#emit({ ...message, type }, [bytes]);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#emit({ ...message, type: '' }); // without bytes: it is not there any more
    }
  }

  async #search({ query, match, ...asked }: Asked & { kind: 'search' }): Promise<void> {
    const choice = choiceOf(asked);
    const found = await api.searchLog(this.id, choice, query, match);
    this.#emit({ kind: 'found', ...choice, query, ...found });
  }

  /** Tell the session once what it asked for is kept, or what is wrong. */
  async #told(trials: number[] | null, kept: Promise<unknown>): Promise<void> {
    let text = '';
    try {
      await kept;
    } catch (error) {
      text = error instanceof Error ? error.message : String(error);
    }
    this.#emit({ kind: 'receipt', text, trials });
  }

  /** A failure is told, and asked again; the state brings the curves. */
  async #guarded(task: () => Promise<void>): Promise<void> {
    try {
      await task();
      this.error = '';
    } catch (error) {
      this.error = error instanceof Error ? error.message : String(error);
      if (!this.isDeleted) for (const each of [this.#states, this.#notes]) each.retry();
    }
    this.#signal.emit();
  }

  #emit(message: Message, buffers: DataView[] = []): void {
    for (const handler of this.#handlers) handler(message, buffers);
  }
}

function choiceOf({ trial, attempt, stream, rank }: LogChoice): LogChoice {
  return { trial, attempt, stream, rank };
}

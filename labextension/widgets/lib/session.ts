/** One experiment as a model knows it; many views of one model share it, and it outlives each of them. */

import type { Choices, Limits, Target } from './choices';
import { ALL_METRICS, firstChoices, metricAlong } from './choices';
import type {
  Columns,
  Experiment,
  Frame,
  Json,
  LogFile,
  LogMatch,
  LogTail,
  PictureMessage,
  Snapshot,
  Trial,
} from './frames';
import { columns } from './frames';
import { LogReader } from './log_reader';
import { paretoFront } from './pareto';
import { PictureStore } from './picture_store';
import type { Series, WholeCurves } from './series';
import { SeriesStore } from './series';
import type { Translator } from './translator';
import { ENGLISH } from './translator';

export interface Wire {
  /** Whether stopping is confirmed elsewhere, so that views do not ask. */
  readonly confirmsStop?: boolean;
  get(name: 'snapshot'): unknown;
  send(content: unknown): void;
  on(name: 'msg:custom', handler: (content: Message, buffers: DataView[]) => void): void;
  off(name: 'msg:custom', handler: (content: Message, buffers: DataView[]) => void): void;
}

export type Message =
  | ({ kind: 'frame' } & Frame)
  | ({ kind: 'log' } & LogTail)
  | ({ kind: 'found' } & LogMatch)
  | ({ kind: 'file' } & LogFile)
  | ({ kind: 'curves' } & WholeCurves)
  | PictureMessage
  | { kind: 'receipt'; text: string; trials: number[] | null };

/** Is told of each change, and whether it is to be seen at once: a choice of a person, or the first curves. */
export type Listener = (isAtOnce: boolean) => void;

/** What curves are called; in a comparison they are runs. */
export interface CurveNames {
  /** In files, so not translated. */
  noun: string;
  nameOf: (number: number) => string;
  /** So many of them, in words. */
  counted: (amount: number) => string;
  /** Whether their points have steps; else only times. */
  hasSteps: boolean;
}

function trialNames(trans: Translator): CurveNames {
  return {
    noun: 'trial',
    nameOf: (number) => trans.__('trial %1', number),
    counted: (amount) => trans._n('%1 trial', '%1 trials', amount),
    hasSteps: true,
  };
}

export class Session {
  experiment: Experiment | undefined;
  error = '';
  receipt = '';
  warnings: string[] = [];
  stopping = false;
  /** Grows with each change of points: charts draw again only then. */
  version = 0;
  readonly trials = new Map<number, Trial>();
  readonly series = new SeriesStore();
  readonly pictures = new PictureStore((content) => {
    this.wire.send(content);
  });
  readonly log = new LogReader(this);
  readonly choices: Choices = firstChoices();
  /** What waits for a confirmation before it is stopped. */
  asking: Target | undefined;
  /** The trials that are being stopped one by one. */
  readonly ending = new Set<number>();
  readonly #limits = new Map<string, Limits>();
  readonly #listeners = new Set<Listener>();
  #seq = -1;
  #front: { version: number; trials: readonly Trial[] } = { version: -1, trials: [] };
  #arrived_ms = 0;

  constructor(
    readonly wire: Wire,
    readonly trans: Translator = ENGLISH,
    readonly names: CurveNames = trialNames(trans),
  ) {
    const snapshot = wire.get('snapshot') as Partial<Snapshot> & { error?: string };
    this.error = snapshot.error ?? '';
    if (snapshot.experiment) {
      const whole = snapshot as Snapshot;
      this.#take(whole, columns(whole.steps, whole.values, whole.times));
    }
    wire.on('msg:custom', this.#receive);
    // Frames that came while this code was still loading are lost: the kernel knows whether there were any.
    wire.send({ kind: 'attach', seq: this.#seq });
  }

  close(): void {
    this.wire.off('msg:custom', this.#receive);
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  choose(choices: Partial<Choices>): void {
    const isOther = 'trial' in choices && choices.trial !== this.choices.trial;
    Object.assign(this.choices, isOther ? { attempt: 0 } : {}, choices);
    this.#tell(true);
  }

  /** Something beside the session has changed that views show. */
  changed(): void {
    this.#tell();
  }

  /** Point at a trial, in a table or a chart; undefined ends it. */
  point(hover: number | undefined): void {
    if (hover === this.choices.hover) return;
    this.choices.hover = hover;
    this.#tell();
  }

  /** Put a trial into a set of trials, or out of it. */
  toggle(set: 'hidden' | 'pinned', trial: number): void {
    const next = new Set(this.choices[set]);
    if (!next.delete(trial)) next.add(trial);
    this.choose({ [set]: next });
  }

  limits(metric: string): Limits {
    return this.#limits.get(metric) ?? [undefined, undefined];
  }

  limit(metric: string, limits: Limits): void {
    this.#limits.set(metric, limits);
    this.#tell();
  }

  /** Ask whether to stop; undefined takes the question back. */
  ask(target: Target | undefined): void {
    this.asking = target;
    this.#tell();
  }

  stop(target: Target): void {
    this.asking = undefined;
    if (target === 'all') this.stopping = true;
    else this.ending.add(target);
    this.wire.send({ kind: 'stop', trials: target === 'all' ? null : [target] });
    this.#tell();
  }

  /** Add a trial that goes on from the checkpoint of this one, with these parameters changed. */
  clone(trial: number, params: Record<string, Json>): void {
    this.wire.send({ kind: 'continue', trial, params });
  }

  /** The kernel's clock: browsers on other machines may be off. */
  now_s(): number {
    return (this.experiment?.now_s ?? 0) + (performance.now() - this.#arrived_ms) / 1000;
  }

  /** The metrics, the objective first. */
  metrics(): string[] {
    const names = [...this.series.metrics.keys()];
    const first = this.experiment?.objective;
    return first && names.includes(first) ? [first, ...names.filter((name) => name !== first)] : names;
  }

  metric(): string | undefined {
    const { metric } = this.choices;
    if (metric === ALL_METRICS || (metric && this.series.metrics.has(metric))) return metric;
    return this.metrics()[0];
  }

  /** What is drawn of one metric: itself, and the one along the x axis. */
  seenMetrics(): string[] {
    const seen = [this.metric(), metricAlong(this.choices.axis)];
    return seen.filter((name) => name !== undefined).filter((name) => name !== ALL_METRICS);
  }

  curve(metric: string, trial: number | undefined): Series | undefined {
    return trial === undefined ? undefined : this.series.metrics.get(metric)?.get(trial);
  }

  best(): Trial | undefined {
    const number = this.experiment?.best ?? null;
    return number === null ? undefined : this.trials.get(number);
  }

  /** The Pareto front; empty with one objective. */
  front(): readonly Trial[] {
    if (this.#front.version !== this.version)
      this.#front = {
        version: this.version,
        trials: paretoFront(this.experiment?.objectives ?? [], this.trials.values()),
      };
    return this.#front.trials;
  }

  /** The trial whose log is shown: the chosen one, else the best, else the newest that has begun. */
  focus(): Trial | undefined {
    if (this.choices.trial !== undefined) return this.trials.get(this.choices.trial);
    return this.best() ?? [...this.trials.values()].filter(({ started_s }) => started_s !== null).at(-1);
  }

  readonly #receive = (message: Message, buffers: DataView[]): void => {
    const metricsBefore = this.series.metrics.size;
    this.#apply(message, buffers);
    this.#tell(metricsBefore === 0 && this.metric() !== undefined);
  };

  #apply(message: Message, buffers: DataView[]): void {
    if (message.kind === 'frame') {
      this.#take(message, columns(...buffers));
    } else if (message.kind === 'curves') {
      this.series.replace(message);
      this.version += 1;
    } else if (message.kind === 'log' || message.kind === 'found') {
      this.log.take(message);
    } else if (message.kind === 'file') {
      this.log.takeFile(message, buffers[0]);
    } else if (message.kind === 'picture') {
      void this.pictures.receive(message, buffers[0]).then(() => {
        this.#tell();
      });
    } else {
      this.receipt = message.text;
      if (message.trials === null) this.stopping = false;
      for (const trial of message.trials ?? []) this.ending.delete(trial);
    }
  }

  #take(frame: Frame, rows: Columns): void {
    const complete = this.series.take(frame.series, rows);
    const missed = this.#seq >= 0 && frame.seq > this.#seq + 1;
    this.#seq = Math.max(this.#seq, frame.seq);
    this.#takeFacts(frame);
    // -1 is no frame's number, so the answer is the whole picture.
    if (!complete || (missed && !isWhole(frame, this.trials.size)))
      this.wire.send({ kind: 'attach', seq: -1 });
  }

  /** What a frame says beside its points. */
  #takeFacts({ experiment, trials, series, warnings, pictures }: Frame): void {
    if (this.experiment?.final && !experiment.final) this.receipt = ''; // of the end before
    this.experiment = experiment;
    this.#arrived_ms = performance.now();
    this.warnings = warnings ?? this.warnings;
    if (pictures) this.pictures.take(pictures);
    for (const trial of trials) this.trials.set(trial.number, trial);
    this.version += series.length + trials.length > 0 ? 1 : 0;
  }

  #tell(isAtOnce = false): void {
    for (const listener of this.#listeners) listener(isAtOnce);
  }
}

function isWhole(frame: Frame, trials: number): boolean {
  return frame.trials.length === trials;
}

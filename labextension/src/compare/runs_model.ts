/** The runs of a comparison: loaded over REST, and again when the socket tells of a change. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { ALL_METRICS } from '../../widgets/lib/choices';
import type { Experiment } from '../../widgets/lib/frames';
import { Session } from '../../widgets/lib/session';
import { oneCurve } from '../api/runs';
import type { Curve } from '../api/runs';
import type { ChangeMessage, Changes, Following } from '../home/changes';
import { CurvesWire, NO_EXPERIMENT } from '../home/curves_wire';
import type { ToldCurve } from '../home/curves_wire';
import { Refresher } from '../home/refresher';
import { bestRun } from './best_run';
import { Run } from './run';

const AFTER_STATE_MS = 150;
const AFTER_METRICS_MS = 1000;
const MOST_METRICS = 12; // as many as the charts show side by side
const [LEAST_POINTS, MOST_POINTS] = [1000, 20_000]; // of a curve; of all of a metric
const NO_POINTS: Curve = { trial: 0, steps: [], values: [], times_s: [] };

export class RunsModel {
  readonly runs: readonly Run[];
  readonly session: Session;
  isConnected = true;
  readonly #wire = new CurvesWire();
  readonly #stale = new Set<Run>();
  readonly #refresher = new Refresher(() => this.#loadStale());
  readonly #unlisten: () => void;
  #following: Following | undefined;
  #shown = '';

  constructor(
    ids: readonly string[],
    readonly changes: Changes,
    trans: TranslationBundle,
  ) {
    this.runs = ids.map((id, i) => new Run(id, i + 1));
    const nameOf = (number: number): string => this.runs[number - 1]?.name ?? '';
    const counted = (amount: number): string => trans._n('%1 run', '%1 runs', amount);
    this.session = new Session(this.#wire, trans, { noun: 'run', nameOf, counted, hasSteps: true });
    this.#unlisten = this.session.listen(() => {
      const shown = this.#metrics().join('\n');
      if (shown === this.#shown) return;
      this.#shown = shown;
      void this.#loadCurves();
    });
  }

  /** Load, and follow; does nothing where it follows already. */
  async follow(): Promise<void> {
    if (this.#following) return;
    this.#refresher.start();
    this.#following = this.changes.follow({
      onMessage: (message) => {
        this.#take(message);
      },
      onConnection: (isConnected) => {
        this.isConnected = isConnected;
        if (isConnected) this.#loadSoon(this.runs.filter(isToBeAskedAgain), 0);
        this.#tell([]);
      },
    });
    await this.#following.ready;
    this.#loadSoon(this.runs, 0);
  }

  /** Stop to follow, as where the comparison is hidden. */
  rest(): void {
    this.#refresher.stop();
    this.#following?.dispose();
    this.#following = undefined;
  }

  dispose(): void {
    this.rest();
    this.#unlisten();
    this.session.close();
  }

  /** Show another trial of a run; undefined is its best. */
  async choose(run: Run, trial: number | undefined): Promise<void> {
    run.chosen = trial;
    await this.#load([run]);
  }

  #take({ changes, reset }: ChangeMessage): void {
    if (reset) {
      this.#loadSoon(this.runs, AFTER_STATE_MS);
      return;
    }
    for (const { experiment, kind } of changes) {
      const run = this.runs.find(({ id }) => id === experiment);
      if (run) this.#loadSoon([run], kind === 'metrics' ? AFTER_METRICS_MS : AFTER_STATE_MS);
    }
  }

  #loadSoon(runs: readonly Run[], afterMs: number): void {
    for (const run of runs) this.#stale.add(run);
    if (runs.length > 0) this.#refresher.soon(afterMs);
  }

  async #loadStale(): Promise<void> {
    const stale = [...this.#stale];
    this.#stale.clear();
    await this.#load(stale);
  }

  async #load(runs: readonly Run[]): Promise<void> {
    await Promise.all(runs.map((run) => run.load()));
    this.#tell(runs.flatMap(opened));
    await this.#loadCurves();
  }

  /** Ask for the curves in sight that have changed since they were asked for. */
  async #loadCurves(): Promise<void> {
    const metrics = this.#metrics();
    const wanted = this.runs.flatMap((run) =>
      metrics
        .filter((metric) => run.trial && run.asked.get(metric) !== run.version)
        .map((metric) => ({ run, metric })),
    );
    const most = Math.max(Math.floor(MOST_POINTS / this.runs.length), LEAST_POINTS);
    const found = await Promise.all(
      wanted.map(({ run, metric }) => curveOf(run, metric, Math.min(most, 2000))),
    );
    const curves = found.filter((curve) => curve !== undefined);
    const failed = this.runs.filter(isToBeAskedAgain);
    if (curves.length + failed.length > 0) this.#tell(curves);
    for (const run of failed) this.#stale.add(run);
    if (failed.length > 0) this.#refresher.retry();
  }

  #metrics(): string[] {
    const seen = this.session.seenMetrics();
    if (this.session.metric() === ALL_METRICS) seen.push(...this.session.metrics().slice(0, MOST_METRICS));
    return [...new Set(seen)];
  }

  #tell(curves: ToldCurve[]): void {
    const trials = this.runs.map((run) => run.asTrial());
    this.#wire.tell(this.#experiment(), trials, curves);
  }

  #experiment(): Experiment {
    const best = bestRun(this.runs);
    const objective = (best ?? this.runs[0])?.details?.objective;
    return {
      ...NO_EXPERIMENT,
      name: 'comparison',
      objective: objective?.metric ?? null,
      objective_label: objective?.label ?? null,
      best: best?.number ?? null,
      trials: this.runs.length,
      now_s: Date.now() / 1000,
    };
  }
}

function isToBeAskedAgain(run: Run): boolean {
  return run.error !== '' && run.isWorthAsking;
}

/** Every metric of a run, so that charts offer it before its points are there. */
function opened(run: Run): ToldCurve[] {
  const curve = run.trial ? undefined : NO_POINTS;
  return (run.details?.metrics ?? []).map((metric) => ({ number: run.number, metric, curve }));
}

async function curveOf(run: Run, metric: string, most: number): Promise<ToldCurve | undefined> {
  const { trial, version } = run;
  if (!trial) return undefined;
  run.asked.set(metric, version);
  // Another trial has been chosen since, or it was asked again.
  const isOld = (): boolean => run.trial?.number !== trial.number || run.asked.get(metric) !== version;
  try {
    const curve = (await oneCurve(run.id, metric, trial.number, most)) ?? NO_POINTS;
    return isOld() ? undefined : { number: run.number, metric, curve };
  } catch (error) {
    if (isOld()) return undefined;
    run.fail(error);
    run.asked.delete(metric);
    return undefined;
  }
}

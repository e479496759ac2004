/** Loads the curves of one experiment, decimated by the server; those that cannot change any more are not asked again. */

import type { WholeCurves } from '../../widgets/lib/series';
import { showSeries } from '../api/experiment';
import type { ExperimentDetails, TrialRow } from '../api/experiment';
import { curvesOf, drawnTrials } from './rest_frames';

const MOST_METRICS = 24;
const POINTS_PER_CURVE = 400;
const [LEAST_POINTS, MOST_POINTS] = [2000, 20_000];

/** Which metrics are looked at, and which trials are to have curves however many there are. */
export interface Wanted {
  metrics: readonly string[];
  trials: ReadonlySet<number>;
}

export class CurveLoader {
  /** The trials that have curves. */
  #drawn = new Set<number>();
  /** The metrics that are asked for. */
  #asked: readonly string[] = [];
  /** Of each metric that was told: the trials whose curve is complete, with the attempt that it is of. */
  readonly #complete = new Map<string, Map<number, number>>();

  constructor(
    private readonly tell: (curves: WholeCurves) => void,
    private readonly ask = showSeries,
  ) {}

  has(trial: number): boolean {
    return this.#drawn.has(trial);
  }

  hasMetric(metric: string): boolean {
    return this.#asked.includes(metric);
  }

  /** `details` and `trials` were loaded before: what is final in them has all its points. */
  async load(details: ExperimentDetails, trials: readonly TrialRow[], wanted: Wanted): Promise<void> {
    const drawn = new Set(drawnTrials(trials, details.objective?.direction, wanted.trials));
    const gone = [...this.#drawn].filter((trial) => !drawn.has(trial));
    const rows = trials.filter(({ number }) => drawn.has(number));
    this.#asked = metricsOf(details, wanted);
    for (const metric of this.#asked) await this.#loadMetric(details.id, metric, rows, gone);
    for (const metric of details.metrics) if (!this.hasMetric(metric)) this.#offer(metric, gone);
    this.#drawn = drawn;
  }

  async #loadMetric(
    id: string,
    metric: string,
    rows: readonly TrialRow[],
    gone: readonly number[],
  ): Promise<void> {
    const complete = this.#complete.get(metric) ?? new Map<number, number>();
    const open = rows.filter(({ number, attempt }) => complete.get(number) !== attempt);
    if (open.length + gone.length === 0) return;
    const trials = open.map(({ number }) => number);
    const maxPoints = Math.min(Math.max(trials.length * POINTS_PER_CURVE, LEAST_POINTS), MOST_POINTS);
    const curves = trials.length > 0 ? await this.ask(id, { metric, trials, maxPoints }) : [];
    this.tell(curvesOf(metric, [...trials, ...gone], curves));
    this.#complete.set(metric, complete);
    for (const trial of gone) complete.delete(trial);
    for (const { number, attempt, ended_s } of open) if (ended_s !== null) complete.set(number, attempt);
  }

  /** Make known a metric whose curves are asked for when it is looked at. */
  #offer(metric: string, gone: readonly number[]): void {
    const complete = this.#complete.get(metric);
    if (complete && gone.length === 0) return;
    this.tell(curvesOf(metric, gone, []));
    if (!complete) this.#complete.set(metric, new Map());
    for (const trial of gone) complete?.delete(trial);
  }
}

/** The metrics whose curves are asked for, those that are looked at first. */
function metricsOf({ metrics, objective }: ExperimentDetails, wanted: Wanted): string[] {
  const first = [...wanted.metrics, ...(objective ? [objective.metric] : [])];
  const known = first.filter((name) => metrics.includes(name));
  return [...new Set([...known, ...metrics])].slice(0, MOST_METRICS);
}

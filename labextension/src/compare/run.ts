/** One run of a comparison: what is known of it, and what is not loaded yet. */

import { flatten } from '../../widgets/charts/dimensions';
import type { Json, Trial } from '../../widgets/lib/frames';
import type { ExperimentDetails } from '../api/experiment';
import { showExperiment } from '../api/experiment';
import { isGone } from '../api/request';
import { NO_TRIAL } from '../home/curves_wire';
import type { TrialRow } from '../api/runs';
import { bestTrial, oneTrial } from '../api/runs';
import { searchText } from '../api/search_text';

export class Run {
  details: ExperimentDetails | undefined;
  trial: TrialRow | undefined;
  /** What a person has chosen; undefined is the best trial. */
  chosen: number | undefined;
  /** Why it cannot be shown. */
  error = '';
  /** Whether to ask again may help where it cannot be shown. */
  isWorthAsking = false;
  /** Grows when its curves may have changed. */
  version = 1;
  /** The version in which each metric was asked for. */
  readonly asked = new Map<string, number>();
  /** How often it was loaded: an answer that a later request has overtaken is dropped. */
  #loads = 0;

  constructor(
    readonly id: string,
    /** From 1: its place, and with it its colour. */
    readonly number: number,
  ) {}

  get name(): string {
    return this.details?.name ?? this.id;
  }

  /** Load what is told of it now. */
  async load(): Promise<void> {
    const { chosen } = this;
    const load = ++this.#loads;
    try {
      const [details, trial] = await Promise.all([
        showExperiment(this.id),
        chosen === undefined ? bestTrial(this.id) : oneTrial(this.id, chosen),
      ]);
      if (load !== this.#loads) return;
      this.details = details;
      this.error = '';
      this.trial = trial;
    } catch (error) {
      if (load !== this.#loads) return;
      this.fail(error);
    }
    this.version += 1;
  }

  /** Keep why it cannot be shown. */
  fail(error: unknown): void {
    this.error = error instanceof Error ? error.message : String(error);
    this.isWorthAsking = !isGone(error);
  }

  /** The run as the live view's charts know a trial. */
  asTrial(): Trial {
    const { number, details } = this;
    const state = details?.state ?? 'WAITING';
    return { ...NO_TRIAL, state, ...this.trial, number, runs_on: '' };
  }

  /** The parameters of its trial, nested ones by path. */
  parameters(): Map<string, Json> | undefined {
    return this.trial && flatten(this.trial.params);
  }

  /** How the experiment was set up. */
  settings(): Map<string, Json> | undefined {
    const { details } = this;
    if (!details) return undefined;
    return new Map<string, Json>([
      ['objective', details.objective?.label ?? null],
      ['direction', details.objective?.direction ?? null],
      ['trials', details.trials],
      ['concurrency', details.concurrency],
      ['backends', details.backends.join(', ')],
      ['notebook', details.notebook],
      ...flatten({ tuner: details.tuner, resources: { ...details.resources } }),
      ...Object.entries(details.search).map(([name, space]): [string, Json] => [
        `search: ${name}`,
        searchText(space),
      ]),
    ]);
  }
}

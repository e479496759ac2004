/** Gives a session of the live view curves that are no trial's of one experiment: runs of a comparison, attempts. */

import type { Experiment, Trial } from '../../widgets/lib/frames';
import type { Message, Wire } from '../../widgets/lib/session';
import type { CurveRows } from '../api/experiment';
import { curvesOf } from './rest_frames';

type Handler = (content: Message, buffers: DataView[]) => void;

/** A curve, whole; it replaces the one before it. */
export interface ToldCurve {
  /** What has it, as the session numbers trials. */
  number: number;
  metric: string;
  /** Undefined opens the metric without a point. */
  curve: Omit<CurveRows, 'points'> | undefined;
}

/** What a session asks of an experiment, and other curves do not have. */
export const NO_EXPERIMENT = {
  id: '',
  state: 'RUNNING',
  final: false,
  reason: '',
  backend: '',
  ranks: 0,
  clones: false,
  objective: null,
  objective_label: null,
  objectives: [],
  best: null,
  begun_s: 0,
  ended_s: null,
  eta_s: null,
};

export const NO_TRIAL: Omit<Trial, 'number' | 'state'> = {
  params: {},
  value: null,
  more_values: [],
  attempt: 0,
  started_s: null,
  ended_s: null,
  reason: '',
  started_from: '',
  parent: null,
  runs_on: '',
};

export class CurvesWire implements Wire {
  #handler: Handler | undefined;
  #seq = 0;

  get(): unknown {
    return {};
  }

  /** What the live view asks of a kernel: nothing that there is. */
  send(): void {
    // Frames are whole and in order, so there is none to ask for again.
  }

  on(_: 'msg:custom', handler: Handler): void {
    this.#handler = handler;
  }

  off(): void {
    this.#handler = undefined;
  }

  /** Tell the session what has curves, and curves. */
  tell(experiment: Experiment, trials: Trial[], curves: readonly ToldCurve[]): void {
    this.#handler?.({ kind: 'frame', seq: this.#seq++, experiment, trials, series: [] }, []);
    for (const { number, metric, curve } of curves) {
      const whole = curve
        ? curvesOf(metric, [number], [{ ...curve, trial: number }])
        : curvesOf(metric, [], []);
      this.#handler?.({ kind: 'curves', ...whole }, []);
    }
  }
}

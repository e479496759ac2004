/** Gives a session of the live view the runs of a comparison, each as if it were one trial. */

import type { Experiment, Trial } from '../../widgets/lib/frames';
import type { Message, Wire } from '../../widgets/lib/session';
import type { Curve } from '../api/runs';
import { curvesOf } from '../home/rest_frames';

type Handler = (content: Message, buffers: DataView[]) => void;

/** A curve of a run, whole; it replaces the one before it. */
export interface RunCurve {
  run: number;
  metric: string;
  /** Undefined opens the metric without a point. */
  curve: Curve | undefined;
}

export class RunsWire implements Wire {
  #handler: Handler | undefined;
  #seq = 0;

  get(): unknown {
    return {};
  }

  /** What the live view asks of a kernel: nothing that a comparison has. */
  send(): void {
    // Frames are whole and in order, so there is none to ask for again.
  }

  on(_: 'msg:custom', handler: Handler): void {
    this.#handler = handler;
  }

  off(): void {
    this.#handler = undefined;
  }

  /** Tell the session of runs and curves. */
  tell(experiment: Experiment, trials: Trial[], curves: readonly RunCurve[]): void {
    this.#handler?.({ kind: 'frame', seq: this.#seq++, experiment, trials, series: [] }, []);
    for (const { run, metric, curve } of curves) {
      const rows = curve ? [{ ...curve, trial: run }] : [];
      const whole = curvesOf(
        metric,
        rows.map(({ trial }) => trial),
        rows,
      );
      this.#handler?.({ kind: 'curves', ...whole }, []);
    }
  }
}

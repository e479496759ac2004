/** Gives a session of the live view the runs of a comparison, each as if it were one trial. */

import type { Block, Experiment, Trial } from '../../widgets/lib/frames';
import type { Message, Wire } from '../../widgets/lib/session';
import type { Curve } from '../api/runs';

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
  #version = 0;

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
    this.#version += 1;
    const series = curves.map(({ run, metric, curve }): Block => {
      // A later attempt takes the place of the one before it.
      const attempt = curve ? this.#version : 0;
      return [metric, run, attempt, 0, curve?.steps.length ?? 0];
    });
    const column = (of: (curve: Curve) => number[]): DataView => {
      const values = curves.flatMap(({ curve }) => (curve ? of(curve) : []));
      return new DataView(Float64Array.from(values).buffer);
    };
    const buffers = [
      column(({ steps }) => steps),
      column(({ values }) => values),
      column((curve) => curve.times_s),
    ];
    this.#handler?.({ kind: 'frame', seq: this.#seq++, experiment, trials, series }, buffers);
  }
}

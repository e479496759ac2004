/** A live region (`aria-live=polite`) with the present state; updated at most once in two seconds. */

import { h, setText } from './dom';
import { stateWord } from './format';
import { ACTIVE } from './frames';
import { ALL_METRICS } from './choices';
import type { Session } from './session';
import { fromTo, trend } from './trend';

const PERIOD_MS = 2000;

export class StatusLine {
  readonly root = h('p', { class: 'at-status', role: 'status', 'aria-live': 'polite' });
  #updated_ms = -PERIOD_MS;
  #timer = 0;

  constructor(readonly session: Session) {}

  update(): void {
    const left = this.#updated_ms + PERIOD_MS - performance.now();
    if (left <= 0 || this.session.experiment?.final) {
      if (this.session.experiment) this.#updated_ms = performance.now();
      setText(this.root, sentence(this.session));
    } else if (this.#timer === 0) {
      this.#timer = window.setTimeout(() => {
        this.#timer = 0;
        this.update();
      }, left);
    }
  }

  destroy(): void {
    window.clearTimeout(this.#timer);
  }
}

export function sentence(session: Session): string {
  const { experiment, trans } = session;
  if (!experiment) return session.error || trans.__('Waiting for the first data.');
  const ended = [...session.trials.values()].filter((trial) => !ACTIVE.has(trial.state)).length;
  const metric = session.metric() === ALL_METRICS ? session.metrics()[0] : session.metric();
  const trial = session.best() ?? session.focus();
  const head = trans._n(
    '%2, %3 of %1 trial ended.',
    '%2, %3 of %1 trials ended.',
    experiment.trials,
    stateWord(experiment.state, trans),
    ended,
  );
  if (!metric || !trial) return head;
  const curve = session.curve(metric, trial.number);
  const line = ACTIVE.has(trial.state) ? trend(metric, curve, trans) : fromTo(metric, curve);
  return line ? `${head} ${trans.__('Trial %1: %2.', trial.number, line)}` : head;
}

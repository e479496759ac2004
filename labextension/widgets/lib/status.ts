/** A live region (`aria-live=polite`) with the present state; updated at most once in two seconds. */

import { h, setText } from './dom';
import { count, stateWord } from './format';
import { ACTIVE } from './frames';
import { ALL_METRICS } from './choices';
import type { Session } from './session';
import { trend } from './trend';

const PERIOD_MS = 2000;

export class StatusLine {
  readonly root = h('p', { class: 'at-status', role: 'status', 'aria-live': 'polite' });
  #updated_ms = -PERIOD_MS;
  #timer = 0;

  constructor(readonly session: Session) {}

  update(): void {
    const left = this.#updated_ms + PERIOD_MS - performance.now();
    if (left <= 0 || this.session.experiment?.final) {
      this.#updated_ms = performance.now();
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
  const { experiment } = session;
  if (!experiment) return session.error || 'Waiting for the first data.';
  const ended = [...session.trials.values()].filter((trial) => !ACTIVE.has(trial.state)).length;
  const metric = session.metric() === ALL_METRICS ? session.metrics()[0] : session.metric();
  const trial = session.best() ?? session.focus();
  const line = metric && trial ? trend(metric, session.curve(metric, trial.number)) : '';
  const head = `${stateWord(experiment.state)}, ${ended} of ${count(experiment.trials, 'trial')} ended`;
  const trendText = trial && ACTIVE.has(trial.state) ? line : line.replace(/, [^,]*$/, '');
  return trendText && trial ? `${head}. Trial ${trial.number}: ${trendText}.` : `${head}.`;
}

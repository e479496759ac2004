/** State, name, progress and the stop button. */

import { h, setAttribute, setText } from './dom';
import { count, duration, number, parameters, stateWord } from './format';
import type { Experiment, Trial } from './frames';
import { ACTIVE } from './frames';
import type { Session } from './session';
import { focusQuestion, pressStop, question } from './stopping';

/** Order of the bar's parts, from the left; the rest of the bar is trials to come. */
const PARTS = [
  'SUCCEEDED',
  'EARLY_STOPPED',
  'FAILED',
  'LOST',
  'PREEMPTED',
  'CANCELLED',
  'RUNNING',
  'PREPARING',
];

export class Header {
  readonly root: HTMLElement;
  readonly #badge = h('span', { class: 'at-badge' });
  readonly #name = h('h3', { class: 'at-name' });
  readonly #backend = h('span', { class: 'at-soft' });
  readonly #stop = h('span', { class: 'at-stop' });
  readonly #button: HTMLButtonElement;
  readonly #bar = h('div', {
    class: 'at-bar',
    role: 'progressbar',
    'aria-label': 'Trials ended',
    'aria-valuemin': 0,
  });
  readonly #facts = h('div', { class: 'at-facts' });
  readonly #best = h('div', { class: 'at-best' });
  readonly #receipt = h('div', { class: 'at-receipt' });

  constructor(readonly session: Session) {
    this.#button = h('button', {
      type: 'button',
      class: 'at-button at-danger',
      onclick: () => {
        pressStop(session, 'all');
      },
    });
    const line = h('div', { class: 'at-head' }, this.#badge, this.#name, this.#backend, this.#stop);
    this.root = h('header', {}, line, this.#bar, this.#facts, this.#best, this.#receipt);
  }

  update(): void {
    const { experiment } = this.session;
    if (!experiment) return;
    setText(this.#badge, stateWord(experiment.state));
    this.#badge.dataset.state = experiment.state;
    setText(this.#name, experiment.name);
    setText(this.#backend, `on ${experiment.backend}`);
    const stopping = this.session.stopping || experiment.state === 'STOPPING';
    setText(this.#button, stopping ? 'Stopping…' : 'Stop');
    setAttribute(this.#button, 'disabled', stopping);
    this.#stop.hidden = experiment.final;
    this.#updateStop();
    this.#fill(experiment);
    this.#updateTexts(experiment);
  }

  /** The confirmation replaces the button while it is open, and gets its focus. */
  #updateStop(): void {
    const asking = this.session.asking === 'all';
    const open = this.#stop.firstElementChild?.classList.contains('at-ask') ?? false;
    if (asking === open && this.#stop.firstElementChild) return;
    const focused = this.#stop.contains(document.activeElement);
    this.#stop.replaceChildren(asking ? question(this.session, 'all') : this.#button);
    if (asking) focusQuestion(this.#stop);
    else if (focused) this.#button.focus();
  }

  #fill(experiment: Experiment): void {
    const states = [...this.session.trials.values()].map((trial) => trial.state);
    const parts = PARTS.flatMap((state) => {
      const share = states.filter((other) => other === state).length / Math.max(experiment.trials, 1);
      return share > 0 ? [h('i', { 'data-state': state, style: `width:${(share * 100).toFixed(2)}%` })] : [];
    });
    const wanted = parts.map((part) => part.outerHTML).join('');
    if (this.#bar.innerHTML !== wanted) this.#bar.replaceChildren(...parts);
    setAttribute(this.#bar, 'aria-valuemax', experiment.trials);
    setAttribute(this.#bar, 'aria-valuenow', states.filter((state) => !ACTIVE.has(state)).length);
  }

  #updateTexts(experiment: Experiment): void {
    const best = this.session.best();
    setText(this.#facts, facts(experiment, [...this.session.trials.values()], this.session.now_s()));
    const value = best ? [`Best ${experiment.objective_label ?? ''} `, number(best.value)] : [];
    const rest =
      best && value.length > 0
        ? `  trial ${best.number} (${stateWord(best.state).toLowerCase()})   ${parameters(best)}`
        : '';
    if (this.#best.textContent !== value.join('') + rest) {
      this.#best.replaceChildren(
        value[0] ?? '',
        h('b', {}, value[1] ?? ''),
        h('span', { class: 'at-soft' }, rest),
      );
    }
    setText(this.#receipt, this.session.receipt || experiment.reason || this.session.error);
  }
}

export function facts(experiment: Experiment, trials: Trial[], now_s: number): string {
  const having = (...states: string[]): number =>
    trials.filter((trial) => states.includes(trial.state)).length;
  const ended = trials.filter((trial) => !ACTIVE.has(trial.state)).length;
  const spent_s = (experiment.ended_s ?? now_s) - experiment.begun_s;
  const left_s = experiment.eta_s === null ? 0 : experiment.eta_s - (now_s - experiment.now_s);
  const running = having('RUNNING', 'PREPARING');
  const failed = having('FAILED', 'LOST');
  return [
    `${ended} of ${count(experiment.trials, 'trial')}`,
    running > 0 ? `${running} running` : '',
    failed > 0 ? `${failed} failed` : '',
    duration(spent_s),
    !experiment.final && left_s > 1 ? `about ${duration(left_s)} left` : '',
  ]
    .filter(Boolean)
    .join('  ·  ');
}

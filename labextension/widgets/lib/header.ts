/** State, name, progress and the stop button. */

import { h, setAttribute, setText } from './dom';
import { duration, number, parameters, stateWord } from './format';
import type { Experiment, Trial } from './frames';
import { ACTIVE } from './frames';
import type { Session } from './session';
import { focusQuestion, pressStop, question } from './stopping';
import type { Translator } from './translator';

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
  readonly #bar = h('div', { class: 'at-bar', role: 'progressbar', 'aria-valuemin': 0 });
  readonly #facts = h('div', { class: 'at-facts' });
  readonly #best = h('div', { class: 'at-best' });
  readonly #receipt = h('div', { class: 'at-receipt' });

  constructor(readonly session: Session) {
    setAttribute(this.#bar, 'aria-label', session.trans.__('Trials ended'));
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
    const { experiment, trans } = this.session;
    if (!experiment) return;
    setText(this.#badge, stateWord(experiment.state, trans));
    this.#badge.dataset.state = experiment.state;
    setText(this.#name, experiment.name);
    setText(this.#backend, trans.__('on %1', experiment.backend));
    const stopping = this.session.stopping || experiment.state === 'STOPPING';
    setText(this.#button, stopping ? trans.__('Stopping…') : trans.__('Stop'));
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
    const { trans } = this.session;
    setText(this.#facts, facts(this.session, experiment).join('  ·  '));
    const front = this.session.front();
    const parts = front.length > 0 ? frontParts(front, trans) : bestParts(this.session.best(), experiment, trans);
    if (this.#best.textContent !== parts.join('')) {
      const [before, value, rest] = parts;
      this.#best.replaceChildren(before, h('b', {}, value), h('span', { class: 'at-soft' }, rest));
    }
    setText(this.#receipt, this.session.receipt || experiment.reason || this.session.error);
  }
}

const MOST_OF_FRONT = 8;

/** As `bestParts`, where no trial is best in all objectives. */
function frontParts(front: readonly Trial[], trans: Translator): [string, string, string] {
  const numbers = front.slice(0, MOST_OF_FRONT).map((trial) => trial.number);
  const left = front.length - numbers.length;
  const rest = left > 0 ? trans.__(' and %1 more', left) : '';
  const before = trans._n('Pareto front, %1 trial: ', 'Pareto front, %1 trials: ', front.length);
  return [before, numbers.join(', '), rest];
}

/** What stands before the best value, the value, and what stands after it. */
function bestParts(
  best: Trial | undefined,
  experiment: Experiment,
  trans: Translator,
): [string, string, string] {
  if (!best) return ['', '', ''];
  const trial = trans.__('trial %1 (%2)', best.number, stateWord(best.state, trans).toLowerCase());
  const before = `${trans.__('Best %1', experiment.objective_label ?? '')} `;
  return [before, number(best.value), `  ${trial}   ${parameters(best)}`];
}

function facts(session: Session, experiment: Experiment): string[] {
  const { trans } = session;
  const trials = [...session.trials.values()];
  const now_s = session.now_s();
  const having = (...states: string[]): number =>
    trials.filter((trial) => states.includes(trial.state)).length;
  const ended = trials.filter((trial) => !ACTIVE.has(trial.state)).length;
  const spent_s = (experiment.ended_s ?? now_s) - experiment.begun_s;
  const left_s = experiment.eta_s === null ? 0 : experiment.eta_s - (now_s - experiment.now_s);
  const running = having('RUNNING', 'PREPARING');
  const failed = having('FAILED', 'LOST');
  return [
    trans._n('%2 of %1 trial', '%2 of %1 trials', experiment.trials, ended),
    running > 0 ? trans.__('%1 running', running) : '',
    failed > 0 ? trans.__('%1 failed', failed) : '',
    duration(spent_s),
    !experiment.final && left_s > 1 ? trans.__('about %1 left', duration(left_s)) : '',
  ].filter(Boolean);
}

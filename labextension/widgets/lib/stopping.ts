/** Stopping: a press stops at once, after a confirmation when a trial has run for long. */

import type { Target } from './choices';
import { secondsOf } from './columns';
import { h } from './dom';
import type { Trial } from './frames';
import { ACTIVE } from './frames';
import type { Session } from './session';

const ASK_AFTER_S = 60;

export function activeOf(session: Session, target: Target): Trial[] {
  return [...session.trials.values()].filter(
    (trial) => ACTIVE.has(trial.state) && (target === 'all' || trial.number === target),
  );
}

export function pressStop(session: Session, target: Target): void {
  const long = activeOf(session, target).some((trial) => secondsOf(session, trial) > ASK_AFTER_S);
  if (long && !session.wire.confirmsStop) session.ask(target);
  else session.stop(target);
}

/** The question in place of the button, with the harmless answer in focus; Escape gives it, too. */
export function question(session: Session, target: Target): HTMLElement {
  const running = activeOf(session, target).filter((trial) => trial.state === 'RUNNING').length;
  const { trans } = session;
  const what =
    target === 'all'
      ? trans._n('Stop %1 running trial?', 'Stop %1 running trials?', running)
      : trans.__('Stop trial %1?', target);
  const answer = (text: string, kind: string, onclick: () => void): HTMLButtonElement =>
    h('button', { type: 'button', class: `at-button ${kind}`, onclick }, text);
  const keep = (): void => {
    session.ask(undefined);
  };
  const stop = (): void => {
    session.stop(target);
  };
  const root = h(
    'span',
    { class: 'at-ask', role: 'group', 'aria-label': what },
    h('span', {}, what),
    answer(trans.__('Stop'), 'at-danger', stop),
    answer(trans.__('Keep running'), 'at-keep', keep),
  );
  root.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') keep();
    // Arrow keys and Enter belong to the open confirmation, not to the row.
    event.stopPropagation();
  });
  return root;
}

export function focusQuestion(root: ParentNode): void {
  root.querySelector<HTMLElement>('.at-keep')?.focus({ preventScroll: true });
}

/** What is said about each action. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { Action } from '../api/actions';

interface ActionTexts {
  label: string;
  button: string;
  question: string;
  /** True of one trial, of one experiment and of several. */
  consequence: string;
  /** Why nothing is done where it fits none. */
  refusal: string;
  isDestructive: boolean;
}

/** @param what The experiment's name, or how many experiments. */
export function actionTexts(trans: TranslationBundle, what: string): Record<Action, ActionTexts> {
  return {
    stop: {
      label: trans.__('Stop'),
      button: trans.__('Stop'),
      question: trans.__('Stop %1?', what),
      consequence: trans.__('Trials that run are ended; what they have reported stays.'),
      refusal: trans.__('%1: there is nothing to stop, all trials have ended.', what),
      isDestructive: true,
    },
    retry: {
      label: trans.__('Retry'),
      button: trans.__('Retry'),
      question: trans.__('Retry %1?', what),
      consequence: trans.__('Failed, cancelled, preempted and lost trials run again.'),
      refusal: trans.__(
        '%1: there is nothing to retry, no trial has failed or was cancelled, preempted or lost.',
        what,
      ),
      isDestructive: false,
    },
    resume: {
      label: trans.__('Resume'),
      button: trans.__('Resume'),
      question: trans.__('Resume %1?', what),
      consequence: trans.__('Cancelled, preempted and lost trials run again; failed ones do not.'),
      refusal: trans.__('%1: there is nothing to resume, no trial was cancelled, preempted or lost.', what),
      isDestructive: false,
    },
    rerun: {
      label: trans.__('Rerun'),
      button: trans.__('Rerun'),
      question: trans.__('Rerun %1?', what),
      consequence: trans.__('The stored code is submitted again as a new experiment.'),
      refusal: trans.__('%1: there is nothing to rerun.', what),
      isDestructive: false,
    },
    delete: {
      label: trans.__('Delete'),
      button: trans.__('Delete'),
      question: trans.__('Delete %1?', what),
      consequence: trans.__('Curves, logs, checkpoints and captured code are removed and cannot come back.'),
      refusal: trans.__('%1: only what has ended can be deleted. Stop it first, then delete it.', what),
      isDestructive: true,
    },
  };
}

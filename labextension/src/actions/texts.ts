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
      consequence: trans.__('Running trials end. What they have reported stays.'),
      refusal: trans.__('Nothing to stop in %1: all trials have ended.', what),
      isDestructive: true,
    },
    retry: {
      label: trans.__('Retry'),
      button: trans.__('Retry'),
      question: trans.__('Retry %1?', what),
      consequence: trans.__('Runs the failed, cancelled, preempted and lost trials again.'),
      refusal: trans.__('Nothing to retry in %1: no trial failed, was cancelled, preempted or lost.', what),
      isDestructive: false,
    },
    resume: {
      label: trans.__('Resume'),
      button: trans.__('Resume'),
      question: trans.__('Resume %1?', what),
      consequence: trans.__('Runs the cancelled, preempted and lost trials again, but not the failed ones.'),
      refusal: trans.__('Nothing to resume in %1: no trial was cancelled, preempted or lost.', what),
      isDestructive: false,
    },
    rerun: {
      label: trans.__('Rerun'),
      button: trans.__('Rerun'),
      question: trans.__('Rerun %1?', what),
      consequence: trans.__('Submits the same code again, as a new experiment.'),
      refusal: trans.__('Nothing to rerun in %1.', what),
      isDestructive: false,
    },
    delete: {
      label: trans.__('Delete'),
      button: trans.__('Delete'),
      question: trans.__('Delete %1?', what),
      consequence: trans.__('Deletes curves, logs, checkpoints and captured code for good.'),
      refusal: trans.__('Only ended experiments can be deleted: stop %1 first.', what),
      isDestructive: true,
    },
  };
}

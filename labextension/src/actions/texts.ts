/** What is said about each action. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { Action } from '../api/actions';

interface ActionTexts {
  label: string;
  button: string;
  question: string;
  consequence: string;
  isDestructive: boolean;
}

/** @param what The experiment's name, or how many experiments. */
export function actionTexts(trans: TranslationBundle, what: string): Record<Action, ActionTexts> {
  return {
    stop: {
      label: trans.__('Stop'),
      button: trans.__('Stop'),
      question: trans.__('Stop %1?', what),
      consequence: trans.__('Its running trials are ended; what they have reported stays.'),
      isDestructive: true,
    },
    retry: {
      label: trans.__('Retry'),
      button: trans.__('Retry'),
      question: trans.__('Retry %1?', what),
      consequence: trans.__('Its failed, cancelled, preempted and lost trials run again.'),
      isDestructive: false,
    },
    resume: {
      label: trans.__('Resume'),
      button: trans.__('Resume'),
      question: trans.__('Resume %1?', what),
      consequence: trans.__('Its cancelled, preempted and lost trials run again; failed ones do not.'),
      isDestructive: false,
    },
    rerun: {
      label: trans.__('Rerun'),
      button: trans.__('Rerun'),
      question: trans.__('Rerun %1?', what),
      consequence: trans.__('Its stored code is submitted again as a new experiment.'),
      isDestructive: false,
    },
    delete: {
      label: trans.__('Delete'),
      button: trans.__('Delete'),
      question: trans.__('Delete %1?', what),
      consequence: trans.__(
        'Its curves, logs, checkpoints and captured code are removed and cannot come back.',
      ),
      isDestructive: true,
    },
  };
}

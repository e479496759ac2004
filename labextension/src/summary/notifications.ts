/** Tells in JupyterLab that experiments have ended. */

import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { Experiment } from '../api/experiments';
import { facts, stateName } from '../sidebar/facts';
import type { NotifiedEnds } from '../sidebar/preferences';

const OPEN = 'autotrain:open-experiment';
const MOST_SINGLE = 3;
const SHOWN_MS = 10_000;

/** Which of the ends are told. */
export function toldEnds(ended: Experiment[], wanted: NotifiedEnds): Experiment[] {
  if (wanted === 'none') return [];
  return wanted === 'all' ? ended : ended.filter((experiment) => experiment.state === 'FAILED');
}

/** One notification for each; many at once are one. */
export function notify(commands: CommandRegistry, trans: TranslationBundle, told: Experiment[]): void {
  if (told.length <= MOST_SINGLE) {
    for (const experiment of told) notifyOne(commands, trans, experiment);
    return;
  }
  const failed = told.filter((experiment) => experiment.state === 'FAILED').length;
  const text = failed
    ? trans.__('%1 experiments ended, %2 failed.', told.length, failed)
    : trans.__('%1 experiments ended, none failed.', told.length);
  Notification.emit(text, failed ? 'error' : 'success', { autoClose: failed ? false : SHOWN_MS });
}

function notifyOne(commands: CommandRegistry, trans: TranslationBundle, experiment: Experiment): void {
  const isFailed = experiment.state === 'FAILED';
  const told = isFailed && experiment.reason ? [experiment.reason] : facts(experiment, trans);
  const text = `${experiment.name} ${stateName(experiment.state, trans)}: ${told.join(' · ')}`;
  const open = {
    label: trans.__('Open'),
    callback: () => void commands.execute(OPEN, { id: experiment.id }),
  };
  const actions = commands.hasCommand(OPEN) ? [open] : [];
  const type = isFailed ? 'error' : experiment.state === 'SUCCEEDED' ? 'success' : 'info';
  Notification.emit(text, type, { autoClose: isFailed ? false : SHOWN_MS, actions });
}

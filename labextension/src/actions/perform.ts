/** An action from its question to what came of it. */

import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';
import { h } from '../../widgets/lib/dom';
import { act, answerOf } from '../api/actions';
import type { Action } from '../api/actions';
import { showExperiment } from '../api/experiment';
import { fits } from './fitting';
import { actionTexts } from './texts';

const OPEN = 'autotrain:open-experiment';
const MOST_NAMED = 10;
const TOLD_MS = 8000;

interface Services {
  commands: CommandRegistry;
  trans: TranslationBundle;
}

interface Target {
  id: string;
  name: string;
}

/**
 * Ask whether to do it to those that it fits, do it, and tell what went wrong.
 * @param trials Numbers of trials, where not all are meant.
 * @returns Whether the action was asked of the server.
 */
export async function perform(
  services: Services,
  action: Action,
  ids: string[],
  trials?: number[],
): Promise<boolean> {
  const { trans } = services;
  try {
    const experiments = await Promise.all(ids.map(showExperiment));
    const targets = experiments.filter((experiment) => fits(action, experiment));
    if (!targets.length) {
      const { refusal } = actionTexts(trans, described(trans, experiments, trials))[action];
      Notification.info(refusal, { autoClose: TOLD_MS });
      return false;
    }
    const isManagerDead = targets.some((target) => !target.manager.alive);
    if (!(await isConfirmed(trans, action, targets, { trials, isManagerDead }))) return false;
    await Promise.all(targets.map((target) => performOne(services, action, target, trials)));
    return true;
  } catch (error) {
    Notification.error(textOf(error), { autoClose: false });
    return false;
  }
}

async function isConfirmed(
  trans: TranslationBundle,
  action: Action,
  targets: Target[],
  { trials, isManagerDead }: { trials: number[] | undefined; isManagerDead: boolean },
): Promise<boolean> {
  const texts = actionTexts(trans, described(trans, targets, trials))[action];
  const paragraphs = [texts.consequence];
  if (targets.length > 1) paragraphs.push(namesOf(targets));
  if (isManagerDead) paragraphs.push(trans.__('The manager is not running; this starts it.'));
  const button = texts.isDestructive ? Dialog.warnButton : Dialog.okButton;
  const answer = await showDialog({
    title: texts.question,
    body: new Widget({ node: h('div', {}, ...paragraphs.map((text) => h('p', {}, text))) }),
    buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), button({ label: texts.button })],
  });
  return answer.button.accept;
}

function described(trans: TranslationBundle, targets: Target[], trials: number[] | undefined): string {
  const name = targets[0]?.name ?? '';
  if (targets.length !== 1) return trans.__('%1 experiments', targets.length);
  if (!trials) return name;
  if (trials.length === 1) return trans.__('trial %1 of %2', trials[0], name);
  return trans.__('%1 trials of %2', trials.length, name);
}

function namesOf(targets: Target[]): string {
  const names = targets.slice(0, MOST_NAMED).map((target) => target.name);
  return names.join(', ') + (targets.length > MOST_NAMED ? ', …' : '.');
}

async function performOne(
  { commands, trans }: Services,
  action: Action,
  target: Target,
  trials?: number[],
): Promise<void> {
  try {
    const kept = await act(target.id, action, trials);
    if (kept.experiment) tellSubmitted(commands, trans, kept.experiment, kept.name ?? '');
    if (kept.request !== undefined) void tellWrong(target, kept.request);
  } catch (error) {
    Notification.error(`${target.name}: ${textOf(error)}`, { autoClose: false });
  }
}

async function tellWrong(target: Target, requestId: number): Promise<void> {
  const wrong = await answerOf(requestId).catch(textOf);
  if (wrong) Notification.error(`${target.name}: ${wrong}`, { autoClose: false });
}

function tellSubmitted(commands: CommandRegistry, trans: TranslationBundle, id: string, name: string): void {
  const open = { label: trans.__('Open'), callback: () => void commands.execute(OPEN, { id }) };
  const actions = commands.hasCommand(OPEN) ? [open] : [];
  Notification.success(trans.__('Submitted %1.', name), { autoClose: 5000, actions });
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

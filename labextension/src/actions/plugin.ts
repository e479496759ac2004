/** Commands that act on experiments: on those that are named, else on the selected ones. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { refreshIcon, runIcon, stopIcon, deleteIcon, redoIcon } from '@jupyterlab/ui-components';
import type { LabIcon } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import type { Action } from '../api/actions';
import { eachChange } from '../home/model_signal';
import { fits } from './fitting';
import { isKey } from './key';
import { perform } from './perform';
import { ISelection, Selection } from './selection';
import { actionTexts } from './texts';

const ICONS: Record<Action, LabIcon> = {
  stop: stopIcon,
  retry: refreshIcon,
  resume: runIcon,
  rerun: redoIcon,
  delete: deleteIcon,
};
/** Of the sidebar; in the palette beside the actions. */
const OTHERS = ['autotrain:show-experiments', 'autotrain:open-chosen', 'autotrain:annotate-chosen'];
const ARGS = {
  type: 'object',
  properties: {
    id: { type: 'string', description: 'The id of an experiment; without it, the selected ones are meant.' },
    trials: {
      type: 'array',
      items: { type: 'integer' },
      description: 'Numbers of trials, where not all are meant.',
    },
  },
} as const;

export const selectionPlugin: JupyterFrontEndPlugin<Selection> = {
  id: 'jupyter-autotrain:selection',
  description: 'The selected experiments.',
  autoStart: true,
  provides: ISelection,
  activate: () => new Selection(),
};

export const actionsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-autotrain:actions',
  description: 'Stop, retry, resume, rerun and delete experiments.',
  autoStart: true,
  requires: [ISelection],
  optional: [ICommandPalette, ITranslator],
  activate: (
    { commands }: JupyterFrontEnd,
    selection: Selection,
    palette: ICommandPalette | null,
    translator: ITranslator | null,
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyter_autotrain');
    const texts = actionTexts(trans, '');
    for (const action of ['stop', 'retry', 'resume', 'rerun', 'delete'] as const) {
      const command = `autotrain:${action}`;
      commands.addCommand(command, {
        label: (args) =>
          args.isPalette ? trans.__('%1 Selected Experiments', texts[action].label) : texts[action].label,
        caption: texts[action].consequence,
        icon: (args) => (args.isPalette ? undefined : ICONS[action]),
        describedBy: { args: ARGS },
        isEnabled: (args) => typeof args.id === 'string' || isOffered(args, selection, action),
        execute: (args) => perform({ commands, trans }, action, idsOf(args, selection), trialsOf(args)),
      });
      palette?.addItem({ command, category: trans.__('Autotrain'), args: { isPalette: true } });
    }
    for (const command of OTHERS) palette?.addItem({ command, category: trans.__('Autotrain') });
    eachChange(() => {
      commands.notifyCommandChanged();
    }, selection.changed);
  },
};

/** A key that is pressed where the action fits none is answered with the reason. */
function isOffered(args: ReadonlyPartialJSONObject, selection: Selection, action: Action): boolean {
  return isKey(args) || selection.experiments.some((experiment) => fits(action, experiment));
}

function idsOf(args: ReadonlyPartialJSONObject, selection: Selection): string[] {
  return typeof args.id === 'string' ? [args.id] : selection.experiments.map(({ id }) => id);
}

function trialsOf(args: ReadonlyPartialJSONObject): number[] | undefined {
  return Array.isArray(args.trials) ? args.trials.map(Number) : undefined;
}

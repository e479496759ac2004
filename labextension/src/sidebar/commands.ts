/** Commands about the experiments that are chosen in the list. */

import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { isKey } from '../actions/key';
import type { Selection } from '../actions/selection';

export const OPEN_CHOSEN = 'autotrain:open-chosen';
export const COMPARE_CHOSEN = 'autotrain:compare-chosen';
export const ANNOTATE_CHOSEN = 'autotrain:annotate-chosen';
export const OPEN_EXPERIMENT = 'autotrain:open-experiment';
export const SHOW_PLACES = 'autotrain:show-places';
export const SHOW_TABLE = 'autotrain:show-all-experiments';
/** What the buttons above the list offer for several experiments. */
export const CHOSEN_COMMANDS = [
  COMPARE_CHOSEN,
  'autotrain:stop',
  'autotrain:retry',
  'autotrain:resume',
  'autotrain:delete',
];

const OPEN_CELL = 'autotrain:open-cell';
const COMPARE = 'autotrain:compare';
const MOST_COMPARED = 20;
const TOLD_MS = 8000;
const NO_ARGS = { args: { type: 'object', properties: {} } } as const;

export function addChosenCommands(
  commands: CommandRegistry,
  selection: Selection,
  trans: TranslationBundle,
): void {
  const ids = (): string[] => selection.experiments.map((experiment) => experiment.id);
  const isOne = (): boolean => selection.experiments.length === 1;
  const areComparable = (): boolean => ids().length > 1 && ids().length <= MOST_COMPARED;
  commands.addCommand(OPEN_CHOSEN, {
    label: trans.__('Open'),
    describedBy: NO_ARGS,
    isEnabled: () => selection.experiments.length > 0 && commands.hasCommand(OPEN_EXPERIMENT),
    execute: () => Promise.all(ids().map((id) => commands.execute(OPEN_EXPERIMENT, { id }))),
  });
  commands.addCommand(COMPARE_CHOSEN, {
    label: trans.__('Compare'),
    describedBy: NO_ARGS,
    isEnabled: (args) => (isKey(args) || areComparable()) && commands.hasCommand(COMPARE),
    execute: async () => {
      if (areComparable()) await commands.execute(COMPARE, { ids: ids() });
      else
        tell(
          trans.__(
            'Choose 2 to %1 experiments to compare: tick their boxes, or use Space or Shift and arrows.',
            MOST_COMPARED,
          ),
        );
    },
  });
  commands.addCommand(ANNOTATE_CHOSEN, {
    label: trans.__('Edit Tags and Note'),
    describedBy: NO_ARGS,
    isEnabled: (args) => isKey(args) || isOne(),
    execute: () => {
      if (isOne()) selection.edit(ids()[0] ?? '');
      else tell(trans.__('Tags and note are edited one experiment at a time; %1 are chosen.', ids().length));
    },
  });
  commands.addCommand('autotrain:open-cell-of-chosen', {
    label: trans.__('Open Cell'),
    describedBy: NO_ARGS,
    isEnabled: () => isOne() && commands.hasCommand(OPEN_CELL),
    execute: () => commands.execute(OPEN_CELL, { id: ids()[0] ?? '' }),
  });
}

/** Why a key does nothing. */
function tell(text: string): void {
  Notification.info(text, { autoClose: TOLD_MS });
}

/** The plugin: a main-area panel that compares experiments. */

import { ILayoutRestorer } from '@jupyterlab/application';
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, MainAreaWidget, WidgetTracker, showErrorMessage } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ISelection } from '../actions/selection';
import type { Selection } from '../actions/selection';
import { IChanges } from '../home/changes';
import type { Changes } from '../home/changes';
import { experimentsIcon } from '../icon';
import { uniqueIds } from './alignment';
import { CompareWidget } from './compare_widget';

const COMMAND = 'autotrain:compare';
const OPEN = 'autotrain:open-experiment';
const MOST = 20;

export const comparePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-autotrain:compare',
  description: 'Compares experiments in the main area.',
  autoStart: true,
  requires: [IChanges, ISelection],
  optional: [ICommandPalette, ILayoutRestorer, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    changes: Changes,
    selection: Selection,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null,
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyter_autotrain');
    const tracker = new WidgetTracker<MainAreaWidget<CompareWidget>>({ namespace: 'autotrain-compare' });
    const open = (id: string): void => {
      if (app.commands.hasCommand(OPEN)) void app.commands.execute(OPEN, { id });
    };
    app.commands.addCommand(COMMAND, {
      label: trans.__('Compare Experiments'),
      describedBy: { args: ARGS },
      execute: async ({ ids }) => {
        const chosen = uniqueIds(ids ?? selection.experiments.map(({ id }) => id));
        const refusal = refusalOf(chosen, trans);
        if (refusal) {
          await showErrorMessage(trans.__('Compare Experiments'), refusal);
          return;
        }
        const key = keyOf(chosen);
        const known = tracker.find((widget) => keyOf(widget.content.ids) === key);
        const widget = known ?? mainWidget(new CompareWidget({ ids: chosen, changes, trans, open }));
        if (!known) {
          void tracker.add(widget); // it waits for the layout, which waits for this command
          app.shell.add(widget, 'main');
        }
        app.shell.activateById(widget.id);
      },
    });
    palette?.addItem({ command: COMMAND, category: trans.__('Autotrain') });
    void restorer?.restore(tracker, {
      command: COMMAND,
      args: ({ content }) => ({ ids: [...content.ids] }),
      name: ({ content }) => keyOf(content.ids),
    });
  },
};

const ARGS = {
  type: 'object',
  properties: {
    ids: {
      type: 'array',
      items: { type: 'string' },
      maxItems: MOST,
      description: 'The ids of the experiments; without them, the selected ones are meant.',
    },
  },
} as const;

function refusalOf(ids: string[], trans: TranslationBundle): string {
  if (ids.length === 0)
    return trans.__('No experiment is chosen. Choose up to %1 in the sidebar, then compare them.', MOST);
  if (ids.length <= MOST) return '';
  return trans.__('%1 experiments are chosen, up to %2 can be compared. Choose fewer.', ids.length, MOST);
}

/** The same for the same experiments, in whichever order. */
function keyOf(ids: readonly string[]): string {
  return [...ids].sort().join(' ');
}

function mainWidget(content: CompareWidget): MainAreaWidget<CompareWidget> {
  const widget = new MainAreaWidget({ content });
  widget.id = `autotrain-compare-${keyOf(content.ids).replaceAll(' ', '-')}`;
  widget.title.label = content.title.label;
  widget.title.icon = experimentsIcon;
  widget.title.closable = true;
  widget.toolbar.hide(); // it would be an empty line
  return widget;
}

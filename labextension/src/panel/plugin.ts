/** The plugin: opens the panel of an experiment, and again after a reload. */

import { ILayoutRestorer } from '@jupyterlab/application';
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { IChanges } from '../home/changes';
import type { Changes } from '../home/changes';
import { chosenExperiment } from './choice';
import { ExperimentPanel } from './panel';

const COMMAND = 'autotrain:open-experiment';

export const panelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-autotrain:panel',
  description: 'The panel of one experiment in the main area.',
  autoStart: true,
  requires: [IChanges],
  optional: [ICommandPalette, ILayoutRestorer, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    changes: Changes,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null,
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyter_autotrain');
    const tracker = new WidgetTracker<ExperimentPanel>({ namespace: 'autotrain-panel' });
    const open = (id: string): ExperimentPanel => {
      const known = tracker.find((panel) => panel.experimentId === id);
      const panel = known ?? new ExperimentPanel(id, { changes, commands: app.commands, trans });
      if (!known) void tracker.add(panel);
      if (!panel.isAttached) app.shell.add(panel, 'main', { type: 'Experiment' });
      app.shell.activateById(panel.id);
      return panel;
    };
    app.commands.addCommand(COMMAND, {
      label: trans.__('Open Experiment…'),
      describedBy: { args: ARGUMENTS },
      execute: async (args) => {
        const id = typeof args.id === 'string' ? args.id : await chosenExperiment(trans);
        return id ? open(id) : null;
      },
    });
    palette?.addItem({ command: COMMAND, category: trans.__('Autotrain') });
    void restorer?.restore(tracker, {
      command: COMMAND,
      args: ({ experimentId }) => ({ id: experimentId }),
      name: ({ experimentId }) => experimentId,
    });
  },
};

const ARGUMENTS = {
  type: 'object',
  properties: {
    id: { type: 'string', description: 'The id of the experiment; without one, it is asked for.' },
  },
};

/** The plugin: what notebooks show of experiments, and do with them. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { lendTranslator } from '../../widgets/lib/translator';
import { IChanges } from '../home/changes';
import type { Changes } from '../home/changes';
import { NotebookBadges } from './badges';
import { addInsertCommand, INSERT_SHOWN_CHART, takeCharts } from './chart_insertion';
import { addCommands, RUN_AS_EXPERIMENT } from './commands';
import { offerToLoad } from './loading';
import { runRendererFactory } from './run_renderer';
import { RunStates } from './run_states';
import { markStaleViews } from './stale_views';
import { OpenedViews } from './opened_views';
import { viewRendererFactory } from './view_renderer';

const OPEN_EXPERIMENT = 'autotrain:open-experiment';

export const notebookPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-autotrain:notebook',
  description: 'Outputs and badges of experiments, commands on cells, charts taken into notebooks.',
  autoStart: true,
  requires: [INotebookTracker, IChanges, IRenderMimeRegistry],
  optional: [ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    notebooks: INotebookTracker,
    changes: Changes,
    rendermime: IRenderMimeRegistry,
    palette: ICommandPalette | null,
    translator: ITranslator | null,
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyter_autotrain');
    const states = new RunStates(changes);
    const views = new OpenedViews();
    const open = (id: string): void => {
      if (app.commands.hasCommand(OPEN_EXPERIMENT)) void app.commands.execute(OPEN_EXPERIMENT, { id });
    };
    notebooks.widgetAdded.connect((_, panel) => {
      new NotebookBadges(panel, states, trans, open);
      markStaleViews(panel);
      views.begin(panel.content.rendermime);
    });
    rendermime.addFactory(runRendererFactory({ changes, commands: app.commands, trans }));
    rendermime.addFactory(viewRendererFactory(views));
    lendTranslator(trans);
    takeCharts(notebooks, trans);
    addInsertCommand(app, notebooks, trans);
    addCommands(app, notebooks, trans);
    offerToLoad(notebooks, trans);
    for (const command of [RUN_AS_EXPERIMENT, INSERT_SHOWN_CHART]) {
      palette?.addItem({ command, category: trans.__('Autotrain') });
    }
  },
};

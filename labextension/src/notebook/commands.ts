/** Commands on the cells of notebooks: run one as an experiment, open the one that an experiment came from. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { CodeCell } from '@jupyterlab/cells';
import { NotebookPanel } from '@jupyterlab/notebook';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { showExperiment } from '../api/experiment';
import { showRunCode } from '../api/run';
import { isExperiment, MAGIC } from '../header/header_lines';
import { outputsOf } from './badges';
import { findCell } from './find_cell';
import { loadExtension } from './loading';
import { runsIn } from './stored_run';

export const RUN_AS_EXPERIMENT = 'autotrain:run-as-experiment';
const OPEN_CELL = 'autotrain:open-cell';
const SHOWN_MS = 8000;

export function addCommands(
  app: JupyterFrontEnd,
  notebooks: INotebookTracker,
  trans: TranslationBundle,
): void {
  app.commands.addCommand(RUN_AS_EXPERIMENT, {
    label: trans.__('Run as Experiment'),
    caption: trans.__('Add %1 to the cell if it is missing, and run it', MAGIC),
    describedBy: { args: { type: 'object', properties: {} } },
    isEnabled: () => canRun(notebooks),
    execute: () => runAsExperiment(app, notebooks),
  });
  app.commands.addCommand(OPEN_CELL, {
    label: trans.__('Open the Cell of an Experiment'),
    describedBy: {
      args: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
    },
    execute: async ({ id }) => {
      const problem = typeof id === 'string' ? await openCell(app, id, trans).catch(textOf) : '';
      if (problem) Notification.warning(problem, { autoClose: SHOWN_MS });
    },
  });
  const selector = '.jp-Notebook .jp-CodeCell';
  app.contextMenu.addItem({ command: RUN_AS_EXPERIMENT, selector, rank: 1 });
}

function activeCode(notebooks: INotebookTracker): CodeCell | undefined {
  const cell = notebooks.activeCell;
  return cell instanceof CodeCell ? cell : undefined;
}

/** A cell with code of Python that is an experiment, or can be made one: it has no other magic, and may be changed. */
function canRun(notebooks: INotebookTracker): boolean {
  const cell = activeCode(notebooks);
  const source = cell?.model.sharedModel.getSource().trimStart();
  if (!cell || !source || !isPython(notebooks.currentWidget)) return false;
  return isExperiment(source) || (!cell.readOnly && !source.startsWith('%%'));
}

/** Also a notebook that does not say its language yet, as before its first kernel. */
function isPython(panel: NotebookPanel | null): boolean {
  const language = panel?.content.model?.defaultKernelLanguage ?? '';
  return language === '' || language === 'python';
}

async function runAsExperiment(app: JupyterFrontEnd, notebooks: INotebookTracker): Promise<void> {
  const cell = activeCode(notebooks);
  const panel = notebooks.currentWidget;
  if (!cell || !panel || !canRun(notebooks)) return;
  const { sharedModel } = cell.model;
  if (!isExperiment(sharedModel.getSource().trimStart())) sharedModel.updateSource(0, 0, `${MAGIC}\n`);
  loadExtension(panel);
  await app.commands.execute('notebook:run-cell');
}

/** Gives what is wrong, "" where the cell is shown. */
async function openCell(app: JupyterFrontEnd, id: string, trans: TranslationBundle): Promise<string> {
  const { notebook_path: path, name } = await showExperiment(id);
  if (!path) return trans.__('%1 was not submitted from a notebook of this server.', name);
  const isThere = app.serviceManager.contents.get(path, { content: false }).then(
    () => true,
    () => false,
  );
  if (!(await isThere)) return trans.__('The notebook %1 no longer exists.', path);
  const panel: unknown = await app.commands.execute('docmanager:open', { path, factory: 'Notebook' });
  if (!(panel instanceof NotebookPanel)) return trans.__('%1 cannot be opened as a notebook.', path);
  await panel.context.ready;
  const index = await cellOf(panel, id);
  const cell = panel.content.widgets[index];
  if (!cell) return trans.__('The cell of %1 is no longer in %2.', name, path);
  panel.content.activeCellIndex = index;
  await panel.content.scrollToCell(cell, 'center');
  app.shell.activateById(panel.id);
  return '';
}

async function cellOf(panel: NotebookPanel, id: string): Promise<number> {
  const facts = panel.content.widgets.map((cell) => ({
    source: cell.model.sharedModel.getSource(),
    runs: cell instanceof CodeCell ? runsIn(outputsOf(cell)).map((run) => run.id) : [],
  }));
  const code = await showRunCode(id).catch(() => ({ script: '', source_map: [] })); // its files may be gone
  return findCell(facts, id, code.script, code.source_map);
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

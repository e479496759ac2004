/** Loads the extension in a kernel, and offers that where a cell shows that it is not loaded. */

import type { Cell } from '@jupyterlab/cells';
import { Notification } from '@jupyterlab/apputils';
import type { KernelError, Notebook } from '@jupyterlab/notebook';
import { NotebookActions } from '@jupyterlab/notebook';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';

const LOAD = '%load_ext jupyter_autotrain';
/** As IPython says it: "Cell magic `%%autotrain` not found." or "Line magic function `%autotrain` not found." */
const NOT_FOUND = /magic (function )?`%%?autotrain` not found/;

/** A kernel answers in order: the cell runs after this. What is loaded already stays as it is. */
export function loadExtension(panel: NotebookPanel): void {
  const kernel = panel.sessionContext.session?.kernel;
  const request = { code: LOAD, silent: true, store_history: false, stop_on_error: false };
  kernel?.requestExecute(request).done.catch(() => undefined); // without the package the cell says so
}

/** Offers to load the extension, and to run the cell again, where the kernel does not know the magic. */
export function offerToLoad(notebooks: INotebookTracker, trans: TranslationBundle): void {
  NotebookActions.executed.connect((_, { notebook, cell, error }) => {
    if (isNotLoaded(error)) offer(notebooks, notebook, cell, trans);
  });
}

function isNotLoaded(error: KernelError | null | undefined): boolean {
  return error?.errorName === 'UsageError' && NOT_FOUND.test(error.errorValue);
}

function offer(notebooks: INotebookTracker, notebook: Notebook, cell: Cell, trans: TranslationBundle): void {
  const panel = notebooks.find((one) => one.content === notebook);
  if (!panel) return;
  const callback = (): void => {
    const index = notebook.widgets.indexOf(cell);
    if (index < 0) return;
    notebook.activeCellIndex = index;
    loadExtension(panel);
    void NotebookActions.run(notebook, panel.sessionContext);
  };
  const actions = [{ label: trans.__('Load and run'), callback }];
  Notification.warning(trans.__('This kernel has not loaded the extension: %1', LOAD), {
    autoClose: false,
    actions,
  });
}

/** Marks the views of kernels that are no more: what the notebook keeps of their runs is shown instead. */

import type { NotebookPanel } from '@jupyterlab/notebook';

const STALE = 'jp-Autotrain-stale';
const VIEWS = '.jp-OutputArea-output:not(.jp-Autotrain-run):has(.autotrain)';
const ENDS = new Set(['restarting', 'autorestarting', 'dead']);

export function markStaleViews({ node, sessionContext }: NotebookPanel): void {
  const mark = (): void => {
    for (const view of node.querySelectorAll(VIEWS)) view.classList.add(STALE);
  };
  sessionContext.statusChanged.connect((_, status) => {
    if (ENDS.has(status)) mark();
  });
  sessionContext.kernelChanged.connect((_, { oldValue }) => {
    if (oldValue) mark();
  });
}

/** Gives the other plugins the changes of the home. */

import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ChangeHub, IChanges } from './changes';
import type { Changes } from './changes';

export const homePlugin: JupyterFrontEndPlugin<Changes> = {
  id: 'jupyter-autotrain:home',
  description: 'The changes of the home, for all that show it.',
  autoStart: true,
  provides: IChanges,
  activate: () => new ChangeHub(),
};

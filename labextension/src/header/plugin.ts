/** The plugin: the header of a `%%autotrain` cell is coloured, completed and checked while it is typed. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { EditorExtensionRegistry, IEditorExtensionRegistry } from '@jupyterlab/codemirror';
import { ICompletionProviderManager } from '@jupyterlab/completer';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { checking } from './checking';
import type { PathOf } from './checking';
import { HeaderCompletions } from './completion';
import { faultMarks } from './fault_marks';
import { highlighting } from './highlighting';
import { tabKey } from './tab_key';

const COMPLETE = 'completer:invoke-notebook';

export const headerPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-autotrain:header',
  description: 'Colours, completes and checks the header of cells that are experiments.',
  autoStart: true,
  requires: [IEditorExtensionRegistry, INotebookTracker],
  optional: [ICompletionProviderManager, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    editors: IEditorExtensionRegistry,
    notebooks: INotebookTracker,
    completions: ICompletionProviderManager | null,
    translator: ITranslator | null,
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyter_autotrain');
    const pathOf: PathOf = (node) => {
      const panel = notebooks.find((found) => found.node.contains(node));
      return panel && app.serviceManager.contents.localPath(panel.context.path);
    };
    const complete = (): boolean => {
      if (!app.commands.hasCommand(COMPLETE)) return false;
      void app.commands.execute(COMPLETE);
      return true;
    };
    editors.addExtension({
      name: 'jupyter-autotrain:header',
      factory: ({ inline }) => {
        const parts = [highlighting, faultMarks(trans), checking(pathOf), tabKey(complete)];
        return inline ? EditorExtensionRegistry.createImmutableExtension(parts) : null;
      },
    });
    completions?.registerProvider(new HeaderCompletions(pathOf));
  },
};

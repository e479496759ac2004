/** The plugin: a sidebar of all experiments, with no kernel running. */

import { ILayoutRestorer } from '@jupyterlab/application';
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, ReactWidget } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { LabIcon } from '@jupyterlab/ui-components';
import * as React from 'react';
import { Sidebar } from './list';
import { ListModel } from './model';

const COMMAND = 'autotrain:show-experiments';
const icon = new LabIcon({
  name: 'autotrain:experiments',
  svgstr:
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16"><path class="jp-icon3" fill="#616161" d="M1 14V2h1v11h13v1zM4 11l3-5 3 3 4-6 .8.6L10.2 11 7 7.6 4.8 11.5z"/></svg>',
});

/** Follows the home while it is shown. */
class SidebarWidget extends ReactWidget {
  constructor(
    private readonly model: ListModel,
    private readonly trans: TranslationBundle,
  ) {
    super();
    this.id = 'jp-autotrain-experiments';
    this.addClass('jp-Autotrain');
    this.title.icon = icon;
    this.title.caption = trans.__('Experiments');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Experiments'));
  }

  protected override render(): React.JSX.Element {
    return <Sidebar model={this.model} trans={this.trans} />;
  }

  protected override onAfterShow(): void {
    void this.model.follow();
  }

  protected override onAfterHide(): void {
    this.model.rest();
  }
}

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-autotrain:experiments',
  description: 'The sidebar of experiments.',
  autoStart: true,
  optional: [ICommandPalette, ILayoutRestorer, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null,
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyter_autotrain');
    const widget = new SidebarWidget(new ListModel(), trans);
    app.shell.add(widget, 'left', { rank: 700, type: 'Experiments' });
    restorer?.add(widget, 'autotrain-experiments');
    app.commands.addCommand(COMMAND, {
      label: trans.__('Show Experiments'),
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => {
        app.shell.activateById(widget.id);
      },
    });
    palette?.addItem({ command: COMMAND, category: trans.__('Autotrain') });
  },
};

export default plugin;

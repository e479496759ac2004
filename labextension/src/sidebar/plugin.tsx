/** The plugin: a sidebar of all experiments, with no kernel running. */

import { ILayoutRestorer } from '@jupyterlab/application';
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { ReactWidget, Toolbar } from '@jupyterlab/ui-components';
import { Panel } from '@lumino/widgets';
import * as React from 'react';
import { ISelection } from '../actions/selection';
import type { Selection } from '../actions/selection';
import { IChanges } from '../home/changes';
import type { Changes } from '../home/changes';
import { experimentsIcon } from '../icon';
import { addChosenCommands } from './commands';
import { connectModels } from './connected';
import { addHead } from './head';
import { Sidebar } from './list';
import type { SidebarParts } from './list';
import { ListModel } from './list_model';
import { keepView } from './kept_view';
import { IPreferences } from './preferences';
import type { Preferences } from './preferences';
import { TreeModel } from './tree_model';

const SHOW = 'autotrain:show-experiments';

/** Follows the home while it is shown. */
class SidebarWidget extends Panel {
  private readonly toolbar = new Toolbar();

  constructor(private readonly parts: SidebarParts) {
    super();
    const title = parts.trans.__('Experiments');
    this.id = 'jp-autotrain-experiments';
    this.addClass('jp-Autotrain');
    this.title.icon = experimentsIcon;
    this.title.caption = title;
    this.node.tabIndex = -1;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', title);
    addHead(this.toolbar, parts);
    this.addWidget(this.toolbar);
    const list = ReactWidget.create(<Sidebar {...parts} />);
    list.addClass('jp-Autotrain-body');
    this.addWidget(list);
  }

  protected override onAfterShow(): void {
    void this.parts.model.follow();
  }

  protected override onAfterHide(): void {
    this.parts.model.rest();
  }

  /** The list, so that keys work at once; while there is none, Tab goes to the buttons. */
  protected override onActivateRequest(): void {
    const entry = this.node.querySelector<HTMLElement>('[role=treeitem][tabindex="0"]');
    (entry ?? this.node).focus();
  }
}

export const sidebarPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-autotrain:experiments',
  description: 'The sidebar of experiments.',
  autoStart: true,
  requires: [IChanges, ISelection, IPreferences],
  optional: [ILayoutRestorer, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    changes: Changes,
    selection: Selection,
    preferences: Preferences,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null,
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyter_autotrain');
    const model = new ListModel(changes);
    const tree = new TreeModel(selection);
    connectModels(model, tree, preferences);
    keepView(window.sessionStorage, model, tree);
    addChosenCommands(app.commands, selection, trans);
    const widget = new SidebarWidget({ model, tree, preferences, commands: app.commands, trans });
    app.shell.add(widget, 'left', { rank: 700, type: 'Experiments' });
    restorer?.add(widget, 'autotrain-experiments');
    app.commands.addCommand(SHOW, {
      label: trans.__('Show Experiments'),
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => {
        app.shell.activateById(widget.id);
      },
    });
  },
};

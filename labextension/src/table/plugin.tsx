/** The plugin: a table of all experiments in the main area. */

import { ILayoutRestorer } from '@jupyterlab/application';
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, tableRowsIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import * as React from 'react';
import { ISelection } from '../actions/selection';
import type { Selection } from '../actions/selection';
import { IChanges } from '../home/changes';
import type { Changes } from '../home/changes';
import { eachChange } from '../home/model_signal';
import { SHOW_TABLE } from '../sidebar/commands';
import { ListModel } from '../sidebar/list_model';
import { TableModel } from './table_model';
import type { TableQuery } from './table_model';
import { ExperimentsTable } from './view';

/** Follows the home while it is shown. */
class TableWidget extends ReactWidget {
  constructor(
    readonly model: TableModel,
    private readonly commands: CommandRegistry,
    private readonly trans: TranslationBundle,
  ) {
    super();
    this.addClass('jp-AutotrainTable');
  }

  override dispose(): void {
    this.model.list.rest();
    super.dispose();
  }

  protected override render(): React.JSX.Element {
    return <ExperimentsTable model={this.model} commands={this.commands} trans={this.trans} />;
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    if (this.isVisible) void this.model.list.follow();
  }

  protected override onAfterShow(): void {
    void this.model.list.follow();
  }

  protected override onAfterHide(): void {
    this.model.list.rest();
  }

  /** The rows, so that keys work at once. */
  protected override onActivateRequest(): void {
    const entry = this.node.querySelector<HTMLElement>('tr[tabindex="0"]');
    (entry ?? this.node.querySelector('input'))?.focus();
  }
}

const ARGS = {
  type: 'object',
  properties: {
    query: {
      type: 'object',
      description: 'What is shown: text, state, tag, place, metric, from, to, sort, order, page.',
    },
  },
} as const;

export const tablePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-autotrain:table',
  description: 'The table of all experiments.',
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
    const tracker = new WidgetTracker<MainAreaWidget<TableWidget>>({ namespace: 'autotrain-table' });
    const open = (query: Partial<TableQuery>): MainAreaWidget<TableWidget> => {
      const model = new TableModel(new ListModel(changes), selection, query);
      const widget = mainWidget(new TableWidget(model, app.commands, trans), trans);
      app.shell.add(widget, 'main');
      void tracker.add(widget); // it waits for the layout, which waits for this command
      keepQuery(tracker, widget);
      return widget;
    };
    app.commands.addCommand(SHOW_TABLE, {
      label: trans.__('Show All Experiments'),
      caption: trans.__('Show all experiments in a table'),
      icon: tableRowsIcon,
      describedBy: { args: ARGS },
      execute: ({ query }) => {
        const known = tracker.currentWidget;
        if (known && query) known.content.model.show(query as Partial<TableQuery>);
        app.shell.activateById((known ?? open((query ?? {}) as Partial<TableQuery>)).id);
      },
    });
    palette?.addItem({ command: SHOW_TABLE, category: trans.__('Autotrain') });
    void restorer?.restore(tracker, {
      command: SHOW_TABLE,
      args: ({ content }) => ({ query: { ...content.model.query } }),
      name: () => 'table',
    });
  },
};

function mainWidget(content: TableWidget, trans: TranslationBundle): MainAreaWidget<TableWidget> {
  const widget = new MainAreaWidget({ content });
  widget.id = 'jp-autotrain-table';
  widget.title.label = trans.__('All Experiments');
  content.node.setAttribute('aria-label', widget.title.label); // the main area gives it the role and a label of its own
  widget.title.icon = tableRowsIcon;
  widget.title.closable = true;
  widget.toolbar.hide(); // it would be an empty line
  return widget;
}

/** What is shown is there again after a reload. */
function keepQuery(
  tracker: WidgetTracker<MainAreaWidget<TableWidget>>,
  widget: MainAreaWidget<TableWidget>,
): void {
  const { model } = widget.content;
  let kept = model.query;
  eachChange(() => {
    if (kept !== model.query) void tracker.save(widget);
    kept = model.query;
  }, model.changed);
}

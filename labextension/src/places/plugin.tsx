/** The plugin: a panel of all places where trials can run, with no kernel running. */

import { ILayoutRestorer } from '@jupyterlab/application';
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, MainAreaWidget, ReactWidget, WidgetTracker } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import * as React from 'react';
import { IChanges } from '../home/changes';
import type { Changes } from '../home/changes';
import { placesIcon } from '../icon';
import { PlacesPanel } from './panel';
import { PlacesModel } from './places_model';

const COMMAND = 'autotrain:show-places';

/** Follows the home while it is shown. */
class PlacesWidget extends ReactWidget {
  constructor(
    private readonly model: PlacesModel,
    private readonly commands: CommandRegistry,
    private readonly trans: TranslationBundle,
  ) {
    super();
    this.addClass('jp-AutotrainPlaces');
  }

  override dispose(): void {
    this.model.dispose();
    super.dispose();
  }

  protected override render(): React.JSX.Element {
    return <PlacesPanel model={this.model} commands={this.commands} trans={this.trans} />;
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    if (this.isVisible) void this.model.follow(); // of what is attached where it can be seen, no more is told
  }

  protected override onAfterShow(): void {
    void this.model.follow();
  }

  protected override onAfterHide(): void {
    this.model.rest();
  }
}

export const placesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-autotrain:places',
  description: 'The panel of places where trials can run.',
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
    const tracker = new WidgetTracker<MainAreaWidget<PlacesWidget>>({ namespace: 'autotrain-places' });
    app.commands.addCommand(COMMAND, {
      label: trans.__('Show Places'),
      caption: trans.__('Show places: where trials can run, and what runs there'),
      icon: placesIcon,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => {
        const shown = tracker.currentWidget ?? open();
        app.shell.activateById(shown.id);
      },
    });
    const open = (): MainAreaWidget<PlacesWidget> => {
      const content = new PlacesWidget(new PlacesModel(changes), app.commands, trans);
      const widget = new MainAreaWidget({ content });
      widget.id = 'jp-autotrain-places';
      widget.title.label = trans.__('Places');
      content.node.setAttribute('aria-label', widget.title.label); // the main area gives it the role and a label of its own
      widget.title.icon = placesIcon;
      widget.toolbar.hide(); // it would be an empty line
      app.shell.add(widget, 'main');
      void tracker.add(widget); // it waits for the layout, which waits for this command
      return widget;
    };
    palette?.addItem({ command: COMMAND, category: trans.__('Autotrain') });
    void restorer?.restore(tracker, { command: COMMAND, name: () => 'places' });
  },
};

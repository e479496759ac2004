/** Tells of the experiments outside of the sidebar: in the status bar, and by notifications when they end. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { IChanges } from '../home/changes';
import type { Changes } from '../home/changes';
import { eachChange } from '../home/model_signal';
import { IPreferences } from '../sidebar/preferences';
import type { Preferences } from '../sidebar/preferences';
import { notify, toldEnds } from './notifications';
import { StatusItem } from './status_item';
import { SummaryModel } from './summary_model';

const SHOW = 'autotrain:show-experiments';

export const summaryPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-autotrain:summary',
  description: 'The number of experiments in the status bar, and notifications when they end.',
  autoStart: true,
  requires: [IChanges, IPreferences],
  optional: [IStatusBar, ITranslator],
  activate: (
    { commands }: JupyterFrontEnd,
    changes: Changes,
    preferences: Preferences,
    statusBar: IStatusBar | null,
    translator: ITranslator | null,
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyter_autotrain');
    const model = new SummaryModel(changes);
    model.ended.connect((_, ended) => {
      notify(commands, trans, toldEnds(ended, preferences.values.notifications));
    });
    const item = new StatusItem(model, trans, () => void commands.execute(SHOW));
    const activeStateChanged = new Signal<object, void>(item);
    const emit = (): void => {
      activeStateChanged.emit();
    };
    eachChange(emit, model.changed, preferences.changed);
    statusBar?.registerStatusItem('jupyter-autotrain:summary', {
      item,
      align: 'left',
      rank: 50,
      isActive: () => preferences.values.statusBar && item.isActive,
      activeStateChanged,
    });
    void preferences.ready.then(() => {
      eachChange(() => {
        follow(model, preferences);
      }, preferences.changed);
    });
  },
};

/** Follow the home only where something is shown of it. */
function follow(model: SummaryModel, preferences: Preferences): void {
  const { statusBar, notifications } = preferences.values;
  if (statusBar || notifications !== 'none') void model.follow();
  else model.rest();
}

/** The settings, whose schema is schema/settings.json; it also names the shortcuts and the context menu. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IPreferences, Preferences } from './preferences';

const ID = 'jupyter-autotrain:settings';

export const preferencesPlugin: JupyterFrontEndPlugin<Preferences> = {
  id: ID,
  description: 'The settings of the experiments.',
  autoStart: true,
  provides: IPreferences,
  optional: [ISettingRegistry],
  activate: (_: JupyterFrontEnd, registry: ISettingRegistry | null) => {
    const preferences = new Preferences();
    preferences.use(registry?.load(ID)).catch((error: unknown) => {
      console.error('The settings of jupyter-autotrain cannot be read; the defaults hold.', error);
    });
    return preferences;
  },
};

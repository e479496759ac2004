/** The settings of the sidebar, typed; they are kept by JupyterLab, and so stay over a reload. */

import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import { PromiseDelegate, Token } from '@lumino/coreutils';
import { ModelSignal, eachChange } from '../home/model_signal';
import type { CountedSignal } from '../home/model_signal';
import type { ListQuery } from '../api/experiments';
import type { Grouping } from './sections';

export type ListSort = 'created' | 'ended' | 'name' | 'best';
export type NotifiedEnds = 'all' | 'failed' | 'none';

export interface PreferenceValues {
  sort: ListSort;
  /** The oldest, the last name or the poorest value first. */
  isReversed: boolean;
  grouping: Grouping;
  notifications: NotifiedEnds;
  statusBar: boolean;
}

const DEFAULTS: PreferenceValues = {
  sort: 'created',
  isReversed: false,
  grouping: 'state',
  notifications: 'all',
  statusBar: true,
};

type AskedOrder = Required<Pick<ListQuery, 'sort' | 'order' | 'grouping'>>;

/** In which order to ask for the list: a page of it has the first ones of what is shown first. */
export function orderOf(values: Pick<PreferenceValues, 'sort' | 'isReversed' | 'grouping'>): AskedOrder {
  const isAscending = values.sort === 'name';
  const order = isAscending === values.isReversed ? 'descending' : 'ascending';
  return { sort: values.sort, order, grouping: values.grouping === 'state' ? 'state' : 'none' };
}

export class Preferences {
  private current = DEFAULTS;
  private readonly loaded = new PromiseDelegate<void>();
  private settings: ISettingRegistry.ISettings | null = null;
  private readonly signal = new ModelSignal(this);

  get values(): PreferenceValues {
    return this.current;
  }

  get changed(): CountedSignal {
    return this.signal;
  }

  /** Resolves when the settings were read, or cannot be. */
  get ready(): Promise<void> {
    return this.loaded.promise;
  }

  /** Follow the settings; until then, and without them, the defaults hold. */
  async use(loading: Promise<ISettingRegistry.ISettings> | undefined): Promise<void> {
    try {
      this.settings = (await loading) ?? null;
      const read = (): void => {
        this.read();
      };
      if (this.settings) eachChange(read, this.settings.changed);
    } finally {
      this.loaded.resolve();
    }
  }

  async set<K extends keyof PreferenceValues>(name: K, value: PreferenceValues[K]): Promise<void> {
    this.current = { ...this.current, [name]: value };
    this.signal.emit();
    await this.settings?.set(name, value);
  }

  private read(): void {
    const found = Object.keys(DEFAULTS).map((name) => [name, this.settings?.get(name).composite]);
    const known = found.filter(([, value]) => value !== undefined && value !== null);
    this.current = { ...DEFAULTS, ...(Object.fromEntries(known) as Partial<PreferenceValues>) };
    this.signal.emit();
  }
}

export const IPreferences = new Token<Preferences>(
  'jupyter-autotrain:IPreferences',
  'The settings of the sidebar.',
);

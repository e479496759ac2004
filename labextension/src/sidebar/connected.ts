/** What the sidebar's models tell each other. */

import { eachChange } from '../home/model_signal';
import type { ListModel } from './list_model';
import { orderOf } from './preferences';
import type { Preferences } from './preferences';
import type { TreeModel } from './tree_model';

/** Ask for the list in the preferred order, and show in the tree what was loaded. */
export function connectModels(model: ListModel, tree: TreeModel, preferences: Preferences): void {
  const show = (): void => {
    if (model.list) tree.take(model.list, preferences.values.grouping);
  };
  eachChange(show, model.changed);
  // They may have been read long before: JupyterLab waits for translations meanwhile.
  eachChange(() => {
    const { sort, order, grouping } = orderOf(preferences.values);
    const { query } = model;
    if (sort !== query.sort || order !== query.order || grouping !== query.grouping)
      model.ask({ sort, order, grouping });
    show();
  }, preferences.changed);
}

/** What is filtered and folded stays over a reload of the page, in this tab. */

import { eachChange } from '../home/model_signal';
import type { ListModel } from './list_model';
import type { TreeModel } from './tree_model';

const KEY = 'jupyter-autotrain:experiments';

interface View {
  text: string;
  tag: string;
  folded: string[];
}

export function keepView(storage: Storage, model: ListModel, tree: TreeModel): void {
  const { text = '', tag = '', folded = [] } = viewIn(storage);
  if (text || tag) model.ask({ text, tag });
  for (const key of folded) tree.fold(key, true);
  eachChange(
    () => {
      const view: View = { text: model.query.text, tag: model.query.tag, folded: [...tree.folded] };
      storage.setItem(KEY, JSON.stringify(view));
    },
    model.changed,
    tree.changed,
  );
}

function viewIn(storage: Storage): Partial<View> {
  try {
    return JSON.parse(storage.getItem(KEY) ?? '{}') as Partial<View>;
  } catch {
    return {}; // another program has written there
  }
}

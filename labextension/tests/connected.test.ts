import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import { Signal } from '@lumino/signaling';
import { Selection } from '../src/actions/selection';
import { connectModels } from '../src/sidebar/connected';
import { keepView } from '../src/sidebar/kept_view';
import { ListModel } from '../src/sidebar/list_model';
import { Preferences } from '../src/sidebar/preferences';
import { TreeModel } from '../src/sidebar/tree_model';
import { experiment, listOf } from './experiments';
import { FakeChanges } from './fakes';

const LIST = listOf([experiment({ id: 'e1' })]);

/** Settings as JupyterLab has read them. */
function settings(values: Record<string, unknown>): ISettingRegistry.ISettings {
  const changed = new Signal({});
  const get = (name: string): object => ({ composite: values[name] });
  return { changed, get } as unknown as ISettingRegistry.ISettings;
}

function models(): { model: ListModel; tree: TreeModel } {
  return { model: new ListModel(new FakeChanges()), tree: new TreeModel(new Selection()) };
}

test('an order that was read before the sidebar begins is what the list is asked in', async () => {
  const preferences = new Preferences();
  await preferences.use(Promise.resolve(settings({ sort: 'name', isReversed: false, grouping: 'notebook' })));
  const { model, tree } = models();
  connectModels(model, tree, preferences);
  assert.deepEqual(
    [model.query.sort, model.query.order, model.query.grouping],
    ['name', 'ascending', 'none'],
  );
});

test('a list that was loaded before the tree follows it is in the tree', () => {
  const { model, tree } = models();
  model.list = LIST;
  connectModels(model, tree, new Preferences());
  assert.deepEqual(tree.rows, ['section:running', 'e1']);
});

test('what was filtered and folded before it is kept is kept', () => {
  const kept = new Map<string, string>();
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => kept.set(key, value),
  } as unknown as Storage;
  const { model, tree } = models();
  model.ask({ text: 'cats' });
  keepView(storage, model, tree);
  const again = models();
  keepView(storage, again.model, again.tree);
  assert.equal(again.model.query.text, 'cats');
});

import { asked, newest } from './fake_server';
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { PageConfig } from '@jupyterlab/coreutils';
import { Selection } from '../src/actions/selection';
import { ListModel } from '../src/sidebar/list_model';
import { TableModel } from '../src/table/table_model';
import { experiment, listOf } from './experiments';
import { Clock, FakeChanges } from './fakes';

let clock: Clock;
let model: TableModel;

beforeEach(() => {
  clock = new Clock();
  asked.length = 0;
  clock.install();
  PageConfig.setOption('baseUrl', 'http://lab.test/');
  model = new TableModel(new ListModel(new FakeChanges()), new Selection());
});

async function followed(total: number): Promise<void> {
  await model.list.follow();
  clock.passAll();
  await (await newest()).answer(listOf([experiment({ id: 'e1' })], total));
}

/** What the newest request asks, without the number that keeps it out of caches. */
async function query(): Promise<Record<string, string>> {
  const found = Object.fromEntries((await newest()).url.searchParams);
  return Object.fromEntries(Object.entries(found).filter(([name]) => !/^\d+$/.test(name)));
}

test('a page is asked for by where it begins, in no groups', async () => {
  await followed(5004);
  assert.equal(model.pages, 51);
  model.show({ page: 50 });
  assert.deepEqual(await query(), {
    sort: 'created',
    order: 'descending',
    grouping: 'none',
    limit: '100',
    offset: '5000',
  });
});

test('another filter or order begins with the first page', async () => {
  await followed(5004);
  model.show({ page: 3 });
  model.show({ state: 'FAILED' });
  assert.equal(model.query.page, 0);
  assert.equal((await query()).state, 'FAILED');
  model.show({ page: 3 });
  model.sortBy('name');
  assert.equal(model.query.page, 0);
});

test('a column is sorted by its better end first, and by the same one again the other way', async () => {
  await followed(1);
  model.sortBy('best');
  assert.equal(model.query.order, 'descending');
  model.sortBy('best');
  assert.equal(model.query.order, 'ascending');
  model.sortBy('name');
  assert.equal(model.query.order, 'ascending');
});

test('days are asked for from midnight to the midnight after, and taken back', async () => {
  await followed(1);
  model.show({ from: '2026-11-24', to: '2026-11-24' });
  const { since_s, until_s } = await query();
  assert.equal(Number(since_s), new Date(2026, 10, 24).getTime() / 1000);
  assert.equal(Number(until_s), new Date(2026, 10, 25).getTime() / 1000);
  model.show({ from: '', to: '' });
  assert.equal((await query()).since_s, undefined);
});

test('a page that is not there any more gives way to the last one', async () => {
  model = new TableModel(new ListModel(new FakeChanges()), new Selection(), { page: 7 });
  await followed(150);
  assert.equal(model.query.page, 1);
  assert.equal((await query()).offset, '100');
});

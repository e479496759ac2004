import { asked, newest } from './fake_server';
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { PageConfig } from '@jupyterlab/coreutils';
import { ListModel } from '../src/sidebar/list_model';
import { Clock, FakeChanges } from './fakes';

const EMPTY = { total: 0, groups: {}, last_change_id: 0, experiments: [], manager: { alive: true } };

let clock: Clock;
let changes: FakeChanges;
let model: ListModel;

beforeEach(() => {
  clock = new Clock();
  changes = new FakeChanges();
  asked.length = 0;
  clock.install();
  PageConfig.setOption('baseUrl', 'http://lab.test/user/ada/');
  model = new ListModel(changes);
});

async function followed(): Promise<void> {
  await model.follow();
  clock.passAll();
  await (await newest()).answer(EMPTY);
}

function change(kind: 'state' | 'metrics'): {
  changes: { id: number; experiment: string; kind: typeof kind }[];
} {
  return { changes: [{ id: 1, experiment: 'e', kind }] };
}

test('the list is asked for below the base URL and kept', async () => {
  await followed();
  assert.equal(asked[0]?.url.pathname, '/user/ada/jupyter-autotrain/api/experiments');
  assert.equal(model.list?.total, 0);
  assert.equal(model.error, '');
});

test('many changes become one request, and changes of metrics wait longer than those of states', async () => {
  await followed();
  for (let i = 0; i < 20; i++) changes.tell(change('metrics'));
  assert.equal(clock.waiting, 1);
  assert.ok(clock.passAll() > 500);
  await (await newest()).answer(EMPTY);
  for (let i = 0; i < 20; i++) changes.tell(change('metrics'));
  for (let i = 0; i < 20; i++) changes.tell(change('state'));
  assert.equal(clock.waiting, 1);
  assert.ok(clock.passAll() <= 100);
  await newest();
  assert.equal(asked.length, 3);
});

test('changes that come faster than answers are shown nevertheless, and one request is under way at a time', async () => {
  await followed();
  changes.tell(change('state'));
  clock.passAll();
  const first = await newest();
  for (let i = 0; i < 5; i++) {
    changes.tell(change('state'));
    clock.passAll();
  }
  assert.equal(asked.length, 2);
  await first.answer({ ...EMPTY, total: 1 });
  assert.equal(model.list?.total, 1);
  clock.passAll();
  await (await newest()).answer({ ...EMPTY, total: 2 });
  assert.equal(model.list.total, 2);
});

test('another store, or too many changes, means that the list is loaded again', async () => {
  await followed();
  changes.tell({ reset: true });
  clock.passAll();
  await newest();
  assert.equal(asked.length, 2);
});

test('an answer that a later request has overtaken is not shown', async () => {
  await followed();
  model.ask({ text: 'a' });
  const first = await newest();
  model.ask({ text: 'ab' });
  const second = await newest();
  await second.answer({ ...EMPTY, total: 2 });
  await first.answer({ ...EMPTY, total: 1 });
  assert.equal(second.url.searchParams.get('text'), 'ab');
  assert.equal(model.list?.total, 2);
});

test('a refusal is told in its own words, and gone with the next answer', async () => {
  await followed();
  model.ask({ text: 'x' });
  await (await newest()).answer({ detail: 'The text is too long.', action: 'Shorten it.' }, 400);
  assert.equal(model.error, 'The text is too long. Shorten it.');
  model.ask({ text: '' });
  await (await newest()).answer(EMPTY);
  assert.equal(model.error, '');
});

test('a manager that comes or goes is told without a request', async () => {
  await followed();
  changes.tell({ manager: { alive: false } });
  assert.equal(model.list?.manager.alive, false);
  assert.equal(clock.waiting, 0);
});

test('a list that is not shown follows nothing and asks nothing', async () => {
  await followed();
  changes.tell(change('state'));
  model.rest();
  assert.equal(changes.followers.size, 0);
  assert.equal(clock.waiting, 0);
  assert.equal(asked.length, 1);
});

test('a list that cannot be loaded is tried again after some seconds', async () => {
  await model.follow();
  clock.passAll();
  await (await newest()).answerText('Bad gateway', 502);
  assert.match(model.error, /^The server answered 502/);
  assert.ok(clock.passAll() > 1000);
  await (await newest()).answer(EMPTY);
  assert.equal(model.error, '');
  assert.equal(clock.waiting, 0);
});

test('a list that could not be loaded is loaded when the connection is back', async () => {
  await model.follow();
  clock.passAll();
  changes.connect(false);
  await (await newest()).fail();
  assert.equal(model.isConnected, false);
  changes.connect(true);
  assert.ok(clock.passAll() < 1000);
  await (await newest()).answer(EMPTY);
  assert.equal(model.error, '');
});

test('a list that was hidden while the server was away knows that it is back', async () => {
  await followed();
  changes.connect(false);
  model.rest();
  changes.connect(true);
  await model.follow();
  assert.equal(model.isConnected, true);
});

test('a failure that a later request has overtaken is not told', async () => {
  await followed();
  model.ask({ text: 'a' });
  const first = await newest();
  model.ask({ text: 'ab' });
  const second = await newest();
  await second.answer(EMPTY);
  await first.fail();
  assert.equal(model.error, '');
});

test('the list is asked for in the order of its headings, so that the first page has what runs', async () => {
  await followed();
  assert.equal(asked[0]?.url.searchParams.get('grouping'), 'state');
});

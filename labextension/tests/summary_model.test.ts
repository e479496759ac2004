import { asked, newest } from './fake_server';
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { PageConfig } from '@jupyterlab/coreutils';
import type { Experiment } from '../src/api/experiments';
import { SummaryModel } from '../src/summary/summary_model';
import { experiment } from './experiments';
import { Clock, FakeChanges } from './fakes';

const STATE = { changes: [{ id: 1, experiment: 'e', kind: 'state' as const }] };

let clock: Clock;
let changes: FakeChanges;
let model: SummaryModel;
let told: string[];

beforeEach(() => {
  clock = new Clock();
  changes = new FakeChanges();
  asked.length = 0;
  told = [];
  clock.install();
  PageConfig.setOption('baseUrl', 'http://lab.test/');
  model = new SummaryModel(changes);
  model.ended.connect((_, ended) => told.push(...ended.map((each) => each.id)));
});

function listed(...ended: [string, number][]): object {
  const experiments: Experiment[] = ended.map(([id, ended_s]) => experiment({ id, final: true, ended_s }));
  return { groups: { running: 2, queued: 1, done: ended.length }, experiments };
}

async function opened(...ended: [string, number][]): Promise<void> {
  await model.follow();
  clock.passAll();
  await (await newest()).answer(listed(...ended));
}

async function changed(...ended: [string, number][]): Promise<void> {
  changes.tell(STATE);
  clock.passAll();
  await (await newest()).answer(listed(...ended));
}

test('what had ended when the page opened is not told', async () => {
  await opened(['old', 10]);
  assert.deepEqual(told, []);
  assert.deepEqual(model.groups, { running: 2, queued: 1, done: 1 });
});

test('each end is told once, also of a run that began after the page opened', async () => {
  await opened(['old', 10]);
  await changed(['new', 20], ['old', 10]);
  await changed(['new', 20], ['old', 10]);
  assert.deepEqual(told, ['new']);
});

test('an older run that comes into sight because others were deleted is not told', async () => {
  await opened(['b', 10]);
  await changed(['a', 5]);
  assert.deepEqual(told, []);
});

test('a run that is tried again is told again', async () => {
  await opened();
  await changed(['again', 20]);
  await changed(['again', 30]);
  assert.deepEqual(told, ['again', 'again']);
});

test('many changes become one request', async () => {
  await opened();
  for (let i = 0; i < 20; i++) changes.tell(STATE);
  assert.equal(clock.waiting, 1);
  model.rest();
  assert.equal(clock.waiting, 0);
  assert.equal(changes.followers.size, 0);
});

test('a summary that cannot be loaded is tried again', async () => {
  await model.follow();
  clock.passAll();
  await (await newest()).fail();
  assert.ok(clock.passAll() > 1000);
  await (await newest()).answer(listed(['old', 10]));
  assert.equal(model.groups.running, 2);
  assert.equal(clock.waiting, 0);
});

test('a summary that could not be loaded is loaded when the connection is back', async () => {
  await model.follow();
  clock.passAll();
  await (await newest()).fail();
  changes.connect(true);
  assert.ok(clock.passAll() < 1000);
  await (await newest()).answer(listed(['old', 10]));
  assert.equal(model.groups.running, 2);
});

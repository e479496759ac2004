import { asked, newest } from './fake_server';
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { PageConfig } from '@jupyterlab/coreutils';
import { PlacesModel } from '../src/places/places_model';
import { Clock, FakeChanges } from './fakes';

const LISTED = { backends: [{ name: 'local', level: 'type', faults: [], trials: [] }], faults: [] };
const NO_PROJECT = {
  path: '',
  digest: '',
  is_trusted: false,
  effects: [],
  fault: 'There is no project file.',
};
const PROJECT = {
  path: '/p/autotrain.yaml',
  digest: 'd1',
  is_trusted: false,
  effects: ['env: {}'],
  fault: '',
};
const EMPTY = { usable: true, reason: '', inventory: { nodes: [] } };

let clock: Clock;
let changes: FakeChanges;
let model: PlacesModel;

beforeEach(() => {
  asked.length = 0;
  clock = new Clock();
  clock.install();
  changes = new FakeChanges();
  PageConfig.setOption('baseUrl', 'http://lab.test/');
  model = new PlacesModel(changes);
});

async function answered(project: object = NO_PROJECT): Promise<void> {
  for (const content of [LISTED, { files: [] }, project, EMPTY]) await (await newest()).answer(content);
}

test('places that cannot be loaded are tried again, and then their machines are asked', async () => {
  void model.follow();
  await (await newest()).fail();
  assert.match(model.error, /^The server does not answer/);
  assert.ok(clock.passAll() > 1000);
  await answered();
  assert.equal(model.error, '');
  assert.deepEqual(model.inventories.get('local'), EMPTY);
  assert.equal(clock.waiting, 0);
});

test('places that could not be loaded are loaded when the connection is back', async () => {
  void model.follow();
  await (await newest()).fail();
  changes.connect(true);
  assert.ok(clock.passAll() < 1000);
  await answered();
  assert.equal(model.error, '');
});

test('a project file that needs trust is asked about until it is trusted as it was seen', async () => {
  void model.follow();
  await answered();
  assert.equal(model.needsTrust, false);
  void model.refresh();
  await answered(PROJECT);
  assert.equal(model.needsTrust, true);
  void model.trust('d1');
  const agreed = await newest();
  assert.deepEqual([agreed.method, JSON.parse(agreed.body)], ['POST', { digest: 'd1' }]);
  await agreed.answer({ is_trusted: true });
  await answered({ ...PROJECT, is_trusted: true });
  assert.equal(model.needsTrust, false);
});

test('each content of a project file is asked about once, however often it is read', () => {
  assert.deepEqual(
    ['d1', 'd1', 'd2', 'd2'].map((digest) => model.isFirstReview(digest)),
    [true, false, true, false],
  );
});

test('a project file that has changed since it was seen is shown anew, with why', async () => {
  void model.follow();
  await answered(PROJECT);
  void model.trust('d1');
  await (await newest()).answer({ detail: 'It has another digest.', action: 'Look at it again.' }, 409);
  for (const content of [LISTED, { files: [] }, { ...PROJECT, digest: 'd2' }])
    await (await newest()).answer(content);
  assert.equal(model.error, 'It has another digest. Look at it again.');
  assert.equal(model.project?.digest, 'd2');
  assert.equal(model.needsTrust, true);
});

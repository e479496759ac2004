import { asked, newest } from './fake_server';
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { PageConfig } from '@jupyterlab/coreutils';
import { PlacesModel } from '../src/places/places_model';
import { Clock, FakeChanges } from './fakes';

const LISTED = { backends: [{ name: 'local', level: 'type', faults: [], trials: [] }], faults: [] };
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

async function answered(): Promise<void> {
  for (const content of [LISTED, { files: [] }, EMPTY]) await (await newest()).answer(content);
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

import { asked, newest } from './fake_server';
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { PageConfig } from '@jupyterlab/coreutils';
import { PlacesModel } from '../src/places/places_model';
import { Clock, FakeChanges, turn } from './fakes';

const STEP = { node: '', name: 'connect', is_good: true, text: 'It answers.', action: '', took_s: null };
const GOES_ON = { state: 'running', good: false, steps: [STEP] };
const PROBLEM = { detail: 'It is busy.', action: 'Try again.' };

let clock: Clock;
let model: PlacesModel;

beforeEach(async () => {
  clock = new Clock();
  asked.length = 0;
  clock.install();
  PageConfig.setOption('baseUrl', 'http://lab.test/');
  model = new PlacesModel(new FakeChanges());
  void model.check('box');
  await (await newest()).answer({ check: 'c1' });
  await (await newest()).answer(GOES_ON);
});

/** Let the pause pass, and give the request that comes after it. */
async function nextPoll(): ReturnType<typeof newest> {
  clock.passAll();
  return newest();
}

test('a check whose steps cannot be asked for once goes on', async () => {
  await (await nextPoll()).answer(PROBLEM, 503);
  assert.equal(model.checks.get('box')?.state, 'running');
  assert.equal(model.checks.get('box')?.isLost, true);
  const again = await nextPoll();
  assert.equal(again.url.searchParams.get('after'), '1');
  await again.answer({ state: 'done', good: true, steps: [STEP] });
  const { state, good, steps, isLost } = model.checks.get('box') ?? {};
  assert.deepEqual([state, good, steps?.length, isLost], ['done', true, 2, false]);
});

test('a check that the server does not know any more has failed', async () => {
  await (await nextPoll()).answer({ detail: 'There is no check c1.' }, 404);
  const { state, error } = model.checks.get('box') ?? {};
  assert.deepEqual([state, error], ['failed', 'There is no check c1.']);
});

test('a cancel that is refused is told until it is pressed again, and the check goes on', async () => {
  void model.cancel('box');
  await (await newest()).answer(PROBLEM, 500);
  await (await nextPoll()).answer(GOES_ON);
  assert.equal(model.checks.get('box')?.error, 'It is busy. Try again.');
  assert.equal(model.checks.get('box')?.state, 'running');
  void model.cancel('box');
  assert.equal(model.checks.get('box')?.error, '');
});

test('a panel that is closed asks nothing more', async () => {
  model.dispose();
  const before = asked.length;
  clock.passAll();
  await turn();
  assert.equal(asked.length, before);
  assert.equal(clock.waiting, 0);
});

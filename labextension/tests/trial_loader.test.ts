import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TrialRow, TrialRows } from '../src/api/experiment';
import { TrialLoader } from '../src/home/trial_loader';

const WAITS: Omit<TrialRow, 'number' | 'state'> = {
  value: null,
  params: {},
  attempt: 1,
  started_s: null,
  ended_s: null,
  reason: '',
  gpus: [],
  backend: '',
  nodes: [],
  blocked_by: '',
};

function row(number: number, state: string): TrialRow {
  return { ...WAITS, number, state };
}

/** Gives the answers one after another, and keeps what was asked. */
function loaderOf(answers: TrialRows[]): { loader: TrialLoader; since: number[] } {
  const since: number[] = [];
  const loader = new TrialLoader((_, changedAfter = 0) => {
    since.push(changedAfter);
    return Promise.resolve(answers.shift() ?? { trials: [], lastStateChange: 0 });
  });
  return { loader, since };
}

test('rows that have changed take the place of those that were known', async () => {
  const first = { trials: [row(1, 'RUNNING'), row(2, 'WAITING')], lastStateChange: 5 };
  const second = { trials: [row(3, 'WAITING'), row(2, 'RUNNING')], lastStateChange: 7 };
  const { loader, since } = loaderOf([first, second]);
  assert.equal((await loader.load('e')).length, 2);
  const changed = await loader.load('e');
  assert.deepEqual(since, [0, 5]);
  assert.deepEqual(changed, second.trials);
  assert.deepEqual(loader.rows(), [row(1, 'RUNNING'), row(2, 'RUNNING'), row(3, 'WAITING')]);
});

test('a row that comes again as it was is no change', async () => {
  const answer = { trials: [row(1, 'RUNNING')], lastStateChange: 5 };
  const { loader } = loaderOf([answer, answer]);
  await loader.load('e');
  assert.deepEqual(await loader.load('e'), []);
});

test('after it has forgotten, all are asked for, and those that are gone go', async () => {
  const first = { trials: [row(1, 'RUNNING'), row(2, 'WAITING')], lastStateChange: 5 };
  const { loader, since } = loaderOf([first, { trials: [row(1, 'RUNNING')], lastStateChange: 1 }]);
  await loader.load('e');
  loader.forget();
  assert.deepEqual(await loader.load('e'), []);
  assert.deepEqual(since, [0, 0]);
  assert.deepEqual(loader.rows(), [row(1, 'RUNNING')]);
});

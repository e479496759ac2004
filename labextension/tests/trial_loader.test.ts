import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TrialRow, TrialRows } from '../src/api/experiment';
import { TrialLoader } from '../src/home/trial_loader';

const WAITS: Omit<TrialRow, 'number' | 'state'> = {
  value: null,
  more_values: [],
  params: {},
  attempt: 1,
  started_s: null,
  ended_s: null,
  reason: '',
  gpus: [],
  backend: '',
  nodes: [],
  started_from: '',
  parent: null,
  blocked_by: '',
};

function row(number: number, state: string): TrialRow {
  return { ...WAITS, number, state };
}

/** Gives one list of pages after another, and keeps what was asked. */
function loaderOf(answers: Page[][]): { loader: TrialLoader; since: number[] } {
  const since: number[] = [];
  // eslint-disable-next-line @typescript-eslint/require-await -- pages come with time
  const loader = new TrialLoader(async function* (_, changedAfter = 0) {
    since.push(changedAfter);
    const pages = answers.shift() ?? [];
    for (const [i, page] of pages.entries()) yield { ...page, isLast: i === pages.length - 1 };
  });
  return { loader, since };
}

type Page = Omit<TrialRows, 'isLast'>;

async function load(loader: TrialLoader): Promise<TrialRow[]> {
  const changed: TrialRow[] = [];
  for await (const rows of loader.load('e')) changed.push(...rows);
  return changed;
}

test('rows that have changed take the place of those that were known', async () => {
  const first = { trials: [row(1, 'RUNNING'), row(2, 'WAITING')], lastStateChange: 5 };
  const second = { trials: [row(3, 'WAITING'), row(2, 'RUNNING')], lastStateChange: 7 };
  const { loader, since } = loaderOf([[first], [second]]);
  assert.equal((await load(loader)).length, 2);
  const changed = await load(loader);
  assert.deepEqual(since, [0, 5]);
  assert.deepEqual(changed, second.trials);
  assert.deepEqual(loader.rows(), [row(1, 'RUNNING'), row(2, 'RUNNING'), row(3, 'WAITING')]);
});

test('the rows of the first page are there before the others', async () => {
  const pages = [1, 2].map((number) => ({ trials: [row(number, 'RUNNING')], lastStateChange: 5 }));
  const { loader } = loaderOf([pages]);
  const known: number[] = [];
  for await (const rows of loader.load('e')) {
    assert.equal(rows.length, 1);
    known.push(loader.rows().length);
  }
  assert.deepEqual(known, [1, 2]);
});

test('a row that comes again as it was is no change', async () => {
  const answer = { trials: [row(1, 'RUNNING')], lastStateChange: 5 };
  const { loader } = loaderOf([[answer], [answer]]);
  await load(loader);
  assert.deepEqual(await load(loader), []);
});

test('after it has forgotten, all are asked for, and those that are gone go', async () => {
  const first = { trials: [row(1, 'RUNNING'), row(2, 'WAITING')], lastStateChange: 5 };
  const { loader, since } = loaderOf([[first], [{ trials: [row(1, 'RUNNING')], lastStateChange: 1 }]]);
  await load(loader);
  loader.forget();
  assert.deepEqual(await load(loader), []);
  assert.deepEqual(since, [0, 0]);
  assert.deepEqual(loader.rows(), [row(1, 'RUNNING')]);
});

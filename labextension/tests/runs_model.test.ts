import { asked } from './fake_server';
import type { Asked } from './fake_server';
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { PageConfig } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Run } from '../src/compare/run';
import { RunsModel } from '../src/compare/runs_model';
import { ENGLISH } from '../widgets/lib/translator';
import { Clock, FakeChanges, turn } from './fakes';

const DETAILS = { name: 'cats', state: 'RUNNING', metrics: ['acc'], objective: null };

let clock: Clock;
let changes: FakeChanges;

beforeEach(() => {
  asked.length = 0;
  clock = new Clock();
  clock.install();
  changes = new FakeChanges();
  PageConfig.setOption('baseUrl', 'http://lab.test/');
});

function contentOf({ url }: Asked, trial = 1): object {
  if (url.pathname.endsWith('/series'))
    return { curves: [{ trial, steps: [1], values: [0.5], times_s: [0] }] };
  if (url.pathname.endsWith('/trials')) return { trials: [{ number: trial, params: {}, value: 0.5 }] };
  return DETAILS;
}

async function turns(): Promise<void> {
  for (let i = 0; i < 5; i++) await turn();
}

/** Answer all that is asked, and what is asked after it. */
async function answerAll(answer = (one: Asked): Promise<void> => one.answer(contentOf(one))): Promise<void> {
  await turns();
  while (asked.length > 0) {
    for (const one of asked.splice(0)) await answer(one);
    await turns();
  }
}

function refuseAll(status: number): Promise<void> {
  return answerAll((one) => one.answer({ detail: 'No.' }, status));
}

async function opened(ids: string[]): Promise<RunsModel> {
  const model = new RunsModel(ids, changes, ENGLISH as unknown as TranslationBundle);
  await model.follow();
  clock.passAll();
  return model;
}

function errorOf({ runs }: RunsModel): string | undefined {
  return runs[0]?.error;
}

function pointsIn({ session }: RunsModel): number {
  return session.curve('acc', 1)?.length ?? 0;
}

test('an older answer about a run does not take the place of a newer one', async () => {
  const run = new Run('e1', 1);
  const loads = [run.load(), run.load()];
  await turns();
  const [older, newer] = [asked.slice(0, 2), asked.slice(2)];
  for (const one of newer) await one.answer(contentOf(one, 2));
  for (const one of older) await one.answer(contentOf(one, 1));
  await Promise.all(loads);
  assert.equal(run.trial?.number, 2);
  assert.equal(run.version, 2);
});

test('an older failure about a run does not take the place of a newer answer', async () => {
  const run = new Run('e1', 1);
  const loads = [run.load(), run.load()];
  await turns();
  const [older, newer] = [asked.slice(0, 2), asked.slice(2)];
  for (const one of newer) await one.answer(contentOf(one));
  for (const one of older) await one.fail();
  await Promise.all(loads);
  assert.equal(run.error, '');
});

test('a run that cannot be loaded is tried again after some seconds, and when the connection is back', async () => {
  const model = await opened(['e1']);
  await refuseAll(502);
  assert.equal(errorOf(model), 'No.');
  assert.ok(clock.passAll() > 1000);
  await refuseAll(502);
  changes.connect(true);
  assert.ok(clock.passAll() < 1000);
  await answerAll();
  assert.equal(errorOf(model), '');
  assert.equal(clock.waiting, 0);
});

test('a curve that cannot be loaded is tried again', async () => {
  const model = await opened(['e1']);
  await turns();
  for (const one of asked.splice(0)) await one.answer(contentOf(one));
  await refuseAll(502);
  assert.equal(pointsIn(model), 0);
  clock.passAll();
  await answerAll();
  assert.equal(pointsIn(model), 1);
});

test('a run that is deleted is told, and not asked again', async () => {
  const model = await opened(['e1']);
  await refuseAll(404);
  assert.equal(errorOf(model), 'No.');
  assert.equal(clock.waiting, 0);
});

test('many changes become one load of each run that has changed', async () => {
  await opened(['e1', 'e2']);
  await answerAll();
  for (let id = 1; id < 9; id++) changes.tell({ changes: [{ id, experiment: 'e2', kind: 'state' }] });
  assert.equal(clock.waiting, 1);
  clock.passAll();
  await turns();
  assert.deepEqual(
    asked.map(({ url }) => url.pathname.split('/').includes('e2')),
    [true, true],
  );
});

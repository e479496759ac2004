import { asked } from './fake_server';
import type { Asked } from './fake_server';
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { PageConfig } from '@jupyterlab/coreutils';
import { RestWire } from '../src/home/rest_wire';
import { Session } from '../widgets/lib/session';
import { FakeChanges, turn } from './fakes';

const RESOURCES = { nodes: 1, workers_per_node: 2, gpus: 0 };
const DETAILS = {
  id: 'e',
  name: 'cats',
  state: 'RUNNING',
  final: false,
  reason: '',
  backend: 'local',
  objective: { metric: 'acc', label: 'acc (last)', direction: 'maximize' },
  best: { trial: 1, value: 0.5 },
  trials: 4,
  warnings: [],
  resources: RESOURCES,
  search: {},
  begun_s: 100,
  took_s: 20,
  ended_s: null,
  eta_s: null,
  manager: { alive: true },
};
const TRIAL = {
  number: 1,
  state: 'RUNNING',
  value: 0.5,
  attempt: 1,
  started_s: 1,
  ended_s: null,
  params: {},
};
const TRIALS = {
  total: 1,
  last_state_change: 7,
  trials: [{ ...TRIAL, reason: '', blocked_by: '', backend: '', nodes: [], gpus: [] }],
};

let changes: FakeChanges;
let wire: RestWire;
let session: Session;
let values: number[];
let metrics: string[];
let stopped: (number[] | null)[];
/** Answers instead of what a running experiment would. */
let refusal: { status: number } | undefined;

beforeEach(async () => {
  PageConfig.setOption('baseUrl', 'http://lab.test/user/ada/');
  [asked.length, changes, stopped, refusal] = [0, new FakeChanges(), [], undefined];
  [values, metrics] = [[0.1, 0.5], ['acc']];
  const stop = (trials: number[] | null): Promise<void> => {
    stopped.push(trials);
    return Promise.resolve();
  };
  wire = new RestWire('e', changes, { stop });
  session = new Session(wire);
  await wire.follow();
});

function contentOf({ url }: Asked): object {
  const { pathname } = url;
  if (pathname.endsWith('/trials')) return TRIALS;
  if (pathname.endsWith('/pictures')) return { pictures: [] };
  if (!pathname.endsWith('/series')) return { ...DETAILS, metrics, best: { trial: 1, value: values.at(-1) } };
  const steps = values.map((_, i) => i);
  return { curves: [{ trial: 1, points: values.length, steps, values, times_s: steps }] };
}

/** Answer all that is asked, until `isSeen`. */
async function until(isSeen: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 60_000;
  while (!isSeen()) {
    assert.ok(performance.now() < deadlineMs, 'it does not come');
    const one = asked.shift();
    if (!one) await turn();
    else if (refusal) await one.answer({ detail: 'There is no experiment e.' }, refusal.status);
    else await one.answer(contentOf(one));
  }
}

function curve(): number[] {
  return [...(session.curve('acc', 1)?.values ?? [])];
}

test('a session gets the experiment, its trials and its curves', async () => {
  await until(() => curve().length > 0);
  assert.equal(session.experiment?.ranks, 2);
  assert.equal(session.experiment.now_s, 120);
  assert.equal(session.trials.get(1)?.value, 0.5);
  assert.deepEqual(curve(), [0.1, 0.5]);
  wire.dispose();
});

test('a change of metrics replaces the curves, and one of another experiment asks nothing', async () => {
  await until(() => curve().length > 0);
  changes.tell({ changes: [{ id: 1, experiment: 'other', kind: 'state' }] });
  await turn();
  assert.equal(asked.length, 0);
  values = [0.2, 0.6, 0.7];
  changes.tell({ changes: [{ id: 2, experiment: 'e', kind: 'metrics' }] });
  await until(() => curve().length === 3);
  assert.deepEqual(curve(), [0.2, 0.6, 0.7]);
  wire.dispose();
});

test('a connection that comes back asks again, and nothing comes twice', async () => {
  await until(() => curve().length > 0);
  changes.connect(false);
  assert.equal(wire.isConnected, false);
  values = [0.1, 0.5, 0.9];
  changes.connect(true);
  await until(() => curve().length > 2);
  assert.deepEqual(curve(), [0.1, 0.5, 0.9]);
  assert.equal(session.trials.size, 1);
  wire.dispose();
});

test('an experiment that is gone is told as deleted, and what was known stays', async () => {
  await until(() => curve().length > 0);
  refusal = { status: 404 };
  changes.tell({ changes: [{ id: 3, experiment: 'e', kind: 'state' }] });
  await until(() => wire.isDeleted);
  assert.equal(session.experiment?.name, 'cats');
  wire.dispose();
});

test('stopping is left to who confirms it', async () => {
  await until(() => curve().length > 0);
  session.stop('all');
  session.stop(1);
  await turn();
  assert.deepEqual(stopped, [null, [1]]);
  assert.equal(session.stopping, false);
  wire.dispose();
});

test('pictures are asked for once the experiment is known, however late that is', async () => {
  const isOfPictures = ({ url }: Asked): boolean => url.pathname.endsWith('/pictures');
  assert.equal(asked.some(isOfPictures), false);
  await until(() => asked.some(isOfPictures));
  assert.equal(session.experiment?.name, 'cats');
  wire.dispose();
});

test('a wire that rests follows nothing', async () => {
  await until(() => curve().length > 0);
  wire.rest();
  assert.equal(changes.followers.size, 0);
  wire.dispose();
});

test('after the first load only the trials that can have changed are asked for, until the store is another', async () => {
  const sinceOf = ({ url }: Asked): string | null => url.searchParams.get('changed_after');
  const isOfTrials = ({ url }: Asked): boolean => url.pathname.endsWith('/trials');
  await until(() => curve().length > 0);
  changes.tell({ changes: [{ id: 4, experiment: 'e', kind: 'state' }] });
  await until(() => asked.some(isOfTrials));
  assert.deepEqual(asked.filter(isOfTrials).map(sinceOf), ['7']);
  await until(() => asked.length === 0);
  changes.tell({ changes: [], reset: true });
  await until(() => asked.some(isOfTrials));
  assert.deepEqual(asked.filter(isOfTrials).map(sinceOf), ['0']);
  wire.dispose();
});

test('a wire that rested while the server was away knows that it is back', async () => {
  await until(() => curve().length > 0);
  changes.connect(false);
  wire.rest();
  changes.connect(true);
  await wire.follow();
  assert.equal(wire.isConnected, true);
  wire.dispose();
});

test('a metric that was not loaded, because there are many, is loaded when it is looked at', async () => {
  metrics = ['acc', ...Array.from({ length: 30 }, (_, i) => `metric ${i}`)];
  await until(() => session.metrics().includes('metric 29'));
  assert.equal(session.curve('metric 29', 1), undefined);
  session.choose({ metric: 'metric 29' });
  wire.wantSeen(session);
  await until(() => session.curve('metric 29', 1)?.length === 2);
  wire.dispose();
});

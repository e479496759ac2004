import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { CurveRows, ExperimentDetails, SeriesQuery, TrialRow } from '../src/api/experiment';
import { CurveLoader } from '../src/home/curve_loader';
import type { Wanted } from '../src/home/curve_loader';
import { SeriesStore } from '../widgets/lib/series';

const NOTHING: Wanted = { metrics: [], trials: new Set() };
const MANY = Array.from({ length: 30 }, (_, i) => `metric ${i}`);

let shown: SeriesStore;
let asked: SeriesQuery[];
let loader: CurveLoader;

beforeEach(() => {
  shown = new SeriesStore();
  asked = [];
  loader = new CurveLoader(
    (curves) => {
      shown.replace(curves);
    },
    (_, query) => {
      asked.push(query);
      return Promise.resolve(query.trials.map(curveOf));
    },
  );
});

function curveOf(trial: number): CurveRows {
  return { trial, points: 1, steps: [1], values: [0.5], times_s: [0] };
}

function details(metrics: string[]): ExperimentDetails {
  return { id: 'e', objective: null, metrics } as unknown as ExperimentDetails;
}

function trial(number: number, changes: Partial<TrialRow> = {}): TrialRow {
  return { number, attempt: 1, started_s: 1, ended_s: null, value: null, ...changes } as TrialRow;
}

function metricsAsked(): string[] {
  return asked.splice(0).map(({ metric }) => metric);
}

test('metrics that are too many to be loaded at once are offered, and loaded when they are looked at', async () => {
  await loader.load(details(MANY), [trial(1)], NOTHING);
  assert.deepEqual([...shown.metrics.keys()], MANY);
  assert.deepEqual(metricsAsked(), MANY.slice(0, 24));
  assert.equal(loader.hasMetric('metric 29'), false);
  await loader.load(details(MANY), [trial(1)], { ...NOTHING, metrics: ['metric 29'] });
  assert.deepEqual(metricsAsked(), ['metric 29', ...MANY.slice(0, 23)]);
  assert.equal(shown.metrics.get('metric 29')?.get(1)?.length, 1);
});

test('a metric is offered once, not with each load', async () => {
  let told = 0;
  loader = new CurveLoader(
    ({ trials }) => (told += trials.length === 0 ? 1 : 0),
    () => Promise.resolve([]),
  );
  for (let i = 0; i < 3; i++) await loader.load(details(MANY), [trial(1)], NOTHING);
  assert.equal(told, 6);
});

test('a trial that reported its first points after the metrics were listed, and ended, gets its curve', async () => {
  const ended = [trial(1, { ended_s: 9 })];
  await loader.load(details([]), ended, NOTHING);
  await loader.load(details(['acc']), ended, NOTHING);
  assert.equal(shown.metrics.get('acc')?.get(1)?.length, 1);
  await loader.load(details(['acc', 'loss']), ended, NOTHING);
  assert.deepEqual(metricsAsked(), ['acc', 'loss']);
  assert.equal(shown.metrics.get('loss')?.get(1)?.length, 1);
});

test('what cannot change any more is not asked again, and a new attempt is', async () => {
  const ended = [trial(1, { ended_s: 9 }), trial(2)];
  await loader.load(details(['acc']), ended, NOTHING);
  await loader.load(details(['acc']), ended, NOTHING);
  assert.deepEqual(asked.at(-1)?.trials, [2]);
  await loader.load(details(['acc']), [trial(1, { attempt: 2 }), trial(2)], NOTHING);
  assert.deepEqual(asked.at(-1)?.trials, [1, 2]);
});

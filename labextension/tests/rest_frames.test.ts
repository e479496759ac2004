import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExperimentDetails, TrialRow } from '../src/api/experiment';
import { numericOptions } from '../src/api/search_text';
import { MOST_CURVES, curvesOf, drawnTrials, numberOf, placeOf, trialOf } from '../src/home/rest_frames';
import { placesOf } from '../src/panel/places_table';
import { ranksOf } from '../src/panel/strategy';
import { SeriesStore } from '../widgets/lib/series';

export function row(number: number, changes: Partial<TrialRow> = {}): TrialRow {
  const ends = { more_values: [], started_s: 1, ended_s: null, reason: '', blocked_by: '' };
  const place = { gpus: [], backend: 'local', nodes: [], started_from: '', parent: null };
  return { number, state: 'RUNNING', value: null, params: {}, attempt: 1, ...ends, ...place, ...changes };
}

test('numbers that JSON does not know come back as they were', () => {
  assert.deepEqual(['inf', '-inf', 1.5].map(numberOf), [Infinity, -Infinity, 1.5]);
  assert.ok(Number.isNaN(numberOf('nan')) && Number.isNaN(numberOf(null)));
  assert.equal(trialOf(row(1, { value: '-inf' })).value, -Infinity);
});

test('a trial that waits says what for, and where it runs is named with its accelerators', () => {
  assert.equal(trialOf(row(1, { blocked_by: 'waits for a GPU' })).reason, 'waits for a GPU');
  assert.equal(
    placeOf(row(1, { backend: 'hpc', nodes: ['a', 'b'], gpus: ['0', '1'] })),
    'hpc: a, b (GPU 0, 1)',
  );
  assert.equal(placeOf(row(1, { backend: '' })), '');
});

test('places count their trials', () => {
  const rows = [row(1), row(2, { state: 'SUCCEEDED' }), row(3, { backend: '' }), row(4, { backend: 'far' })];
  assert.deepEqual(placesOf(rows), [
    { place: 'local', active: 1, ended: 1, trials: [1, 2] },
    { place: 'far', active: 1, ended: 0, trials: [4] },
  ]);
});

test('of few trials all that have begun are drawn, also those that wait to begin again', () => {
  const waiting = { started_s: null };
  const trials = [row(1), row(2, waiting), row(3, { ...waiting, attempt: 2 })];
  assert.deepEqual(drawnTrials(trials, 'maximize', new Set()), [1, 3]);
});

test('of many trials the best, the newest and the wanted ones are drawn', () => {
  const trials = Array.from({ length: 1000 }, (_, i) => row(i + 1, { value: i === 400 ? 'nan' : i }));
  const least = drawnTrials(trials, 'minimize', new Set([500]));
  assert.equal(least.length, MOST_CURVES);
  assert.ok(least.includes(1) && least.includes(500) && least.includes(1000));
  const greatest = drawnTrials(trials, 'maximize', new Set());
  assert.equal(greatest[0], 1000 - MOST_CURVES + 1);
});

test('curves take the place of those before, and a trial without one has none', () => {
  const store = new SeriesStore();
  const rows = [{ trial: 1, points: 9, steps: [0, 8], values: [1, null], times_s: [5, 6] }];
  store.replace(curvesOf('acc', [1, 2], rows));
  store.replace(curvesOf('acc', [1, 2], rows));
  const curve = store.metrics.get('acc')?.get(1);
  assert.deepEqual([...(curve?.steps ?? [])], [0, 8]);
  assert.equal(curve?.max, 1);
  store.replace(curvesOf('acc', [1], []));
  assert.deepEqual([...(store.metrics.get('acc')?.keys() ?? [])], []);
});

test('ranks are counted node by node, with the accelerators that each node gives', () => {
  const resources = { nodes: 2, workers_per_node: 2, gpus: 1 };
  const placed = row(1, { nodes: ['a', 'b'], gpus: ['0', '3'] });
  assert.deepEqual(ranksOf({ resources } as ExperimentDetails, placed), [
    { node: 'a', first: 0, last: 1, accelerators: ['0'] },
    { node: 'b', first: 2, last: 3, accelerators: ['3'] },
  ]);
});

test('the options of numeric choices are known by their paths', () => {
  const width = { kind: 'choice', options: [32, 64] };
  const net = { kind: 'choice', options: [{ kind: 'nested', name: 'mlp', space: { width } }, 'linear'] };
  const search = {
    lr: { kind: 'uniform', low: 0, high: 1 },
    batch: width,
    mixed: { options: [1, 'a'] },
    net,
  };
  assert.deepEqual(
    [...numericOptions(search)],
    [
      ['batch', [32, 64]],
      ['net.width', [32, 64]],
    ],
  );
});

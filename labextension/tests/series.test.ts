import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Block } from '../widgets/lib/frames';
import { SeriesStore } from '../widgets/lib/series';
import { ENGLISH } from '../widgets/lib/translator';
import { trend } from '../widgets/lib/trend';

function points(...values: number[]): { steps: Float64Array; values: Float64Array; times: Float64Array } {
  const steps = Float64Array.from(values, (_, i) => i);
  return { steps, values: Float64Array.from(values), times: steps };
}

function block(first: number, rows: number, attempt = 1): Block {
  return ['loss', 1, attempt, first, rows];
}

test('rows that come twice are kept once', () => {
  const store = new SeriesStore();
  assert.ok(store.take([block(0, 3)], points(1, 2, 3)));
  assert.ok(store.take([block(1, 3)], points(2, 3, 4)));
  assert.ok(store.take([block(0, 2)], points(1, 2)));
  assert.deepEqual([...(store.metrics.get('loss')?.get(1)?.values ?? [])], [1, 2, 3, 4]);
});

test('missing rows are noticed and nothing is put in their place', () => {
  const store = new SeriesStore();
  store.take([block(0, 2)], points(1, 2));
  assert.equal(store.take([block(3, 1)], points(9)), false);
  assert.equal(store.metrics.get('loss')?.get(1)?.length, 2);
});

function curveIn(store: SeriesStore): { steps: number[]; values: number[] } {
  const series = store.metrics.get('loss')?.get(1);
  return { steps: [...(series?.steps ?? [])], values: [...(series?.values ?? [])] };
}

test('a new attempt that begins anew takes the place of the one before, whenever its last rows come', () => {
  const store = new SeriesStore();
  store.take([block(0, 2)], points(1, 2));
  store.take([block(0, 1, 2)], points(7));
  assert.ok(store.take([block(2, 1, 1)], points(3)));
  assert.deepEqual(curveIn(store), { steps: [0], values: [7] });
});

test('a new attempt that resumes goes on where its first step lies', () => {
  const store = new SeriesStore();
  const later = { ...points(8, 9), steps: Float64Array.from([2, 3]) };
  store.take([block(0, 1, 2)], { ...points(8), steps: later.steps.subarray(0, 1) });
  // A frame of the first attempt was missed: what is asked for again has all of both.
  store.take([block(0, 4)], points(1, 2, 3, 4));
  assert.deepEqual(curveIn(store), { steps: [0, 1, 2], values: [1, 2, 8] });
  store.take([block(0, 2, 2)], later);
  assert.deepEqual(curveIn(store), { steps: [0, 1, 2, 3], values: [1, 2, 8, 9] });
  const series = store.metrics.get('loss')?.get(1);
  assert.deepEqual([series?.min, series?.max], [1, 9]);
});

test('columns that have grown many times hold what was appended', () => {
  const store = new SeriesStore();
  const values = Array.from({ length: 5000 }, (_, i) => i * 2);
  for (let first = 0; first < 5000; first += 125)
    store.take([block(first, 125)], points(...values.slice(first, first + 125)));
  const series = store.metrics.get('loss')?.get(1);
  assert.deepEqual([...(series?.values ?? [])], values);
  assert.deepEqual([series?.min, series?.max], [0, 9998]);
});

test('a curve is told in one line', () => {
  const told = (...values: number[]): string => {
    const store = new SeriesStore();
    store.take([block(0, values.length)], points(...values));
    return trend('loss', store.metrics.get('loss')?.get(1), ENGLISH);
  };
  assert.equal(told(0.5), 'loss 0.5');
  assert.equal(told(3, 2, 1), 'loss 3 → 1, still falling');
  assert.equal(told(1, 2, 3), 'loss 1 → 3, still rising');
  assert.equal(told(2, 2, 2), 'loss 2 → 2, flat now');
  assert.equal(told(1, NaN), 'loss 1 → NaN, not a number now');
  assert.equal(trend('loss', undefined, ENGLISH), '');
});

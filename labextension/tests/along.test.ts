import assert from 'node:assert/strict';
import { test } from 'node:test';
import { along } from '../widgets/lib/curves';
import { Series } from '../widgets/lib/series';

function series(points: [step: number, time: number, value: number][]): Series {
  const column = (at: 0 | 1 | 2): Float64Array => Float64Array.from(points, (point) => point[at]);
  return Series.of({ steps: column(0), times: column(1), values: column(2) });
}

function drawn(curve: Series, other: Series): [number, number][] {
  const { x, rows } = along(curve, other);
  return [...x].map((at, i) => [at, curve.values[rows[i] ?? -1] ?? NaN]);
}

test('what is reported together lies together, also where each metric counts its own steps', () => {
  const epochs = series([
    [10, 1, 1],
    [20, 2, 2],
  ]);
  const byEpoch = series([
    [0, 1, 0.5],
    [1, 2, 0.7],
  ]);
  assert.deepEqual(drawn(byEpoch, epochs), [
    [1, 0.5],
    [2, 0.7],
  ]);
});

test('between two reports the other metric grows evenly, before and after them nothing lies', () => {
  const epochs = series([
    [0, 10, 1],
    [4, 20, 2],
    [5, 30, NaN],
  ]);
  const loss = series([
    [0, 5, 9],
    [1, 10, 8],
    [2, 15, 7],
    [3, 20, 6],
    [4, 25, 5],
    [5, 40, 4],
  ]);
  assert.deepEqual(drawn(loss, epochs), [
    [1, 8],
    [1.5, 7],
    [2, 6],
  ]);
});

test('along a metric that falls the points are put in order', () => {
  const rate = series([
    [0, 1, 0.3],
    [1, 2, 0.1],
    [2, 3, 0.2],
  ]);
  const loss = series([
    [0, 1, 1],
    [1, 2, 2],
    [2, 3, 3],
  ]);
  assert.deepEqual(drawn(loss, rate), [
    [0.1, 2],
    [0.2, 3],
    [0.3, 1],
  ]);
});

test('where times are not kept, equal steps lie together', () => {
  const epochs = series([
    [0, 7, 1],
    [9, 7, 2],
  ]);
  assert.deepEqual(drawn(series([[9, 7, 0.5]]), epochs), [[2, 0.5]]);
});

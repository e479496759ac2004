import assert from 'node:assert/strict';
import { test } from 'node:test';
import { align } from '../widgets/lib/align';
import { nearest } from '../widgets/lib/curves';

function curve(x: number[], y: number[]): { x: Float64Array; y: Float64Array } {
  return { x: Float64Array.from(x), y: Float64Array.from(y) };
}

test('without curves there is nothing to draw', () => {
  assert.deepEqual(align([], 0, 1, 100), [[], []]);
});

test('curves of the same steps share their column, a shorter one ends earlier', () => {
  const [x, long, short] = align([curve([0, 1, 2], [5, 6, 7]), curve([0, 1], [8, 9])], 0, 2, 100);
  assert.deepEqual([...x], [0, 1, 2]);
  assert.deepEqual([...(long ?? [])], [5, 6, 7]);
  assert.deepEqual([...(short ?? [])], [8, 9]);
});

test('a step that a curve does not have is passed over, a value that is no number is a gap', () => {
  const [x, even, odd] = align([curve([0, 2], [1, NaN]), curve([1, 3], [4, 5])], 0, 3, 100);
  assert.deepEqual([...x], [0, 1, 2, 3]);
  assert.deepEqual([...(even ?? [])], [1, undefined, null, undefined]);
  assert.deepEqual([...(odd ?? [])], [undefined, 4, undefined, 5]);
});

test('a million points become two per pixel, and the extremes of each pixel stay', () => {
  const size = 1_000_000;
  const x = Float64Array.from({ length: size }, (_, i) => i);
  const y = new Float64Array(size);
  [y[123_456], y[654_321]] = [9, -9];
  const [column, values] = align([{ x, y }], 0, size, 500);
  assert.equal(column.length, 1000);
  assert.ok(values?.includes(9));
  assert.ok(values?.includes(-9));
});

test('a gap among a million points is a gap where it is wider than a pixel', () => {
  const size = 1_000_000;
  const x = Float64Array.from({ length: size }, (_, i) => i);
  const y = new Float64Array(size).fill(1).fill(NaN, 500_000, 600_000);
  y[10] = NaN;
  const [, values = []] = align([{ x, y }], 0, size, 500);
  assert.equal(values[0], 1);
  assert.equal([...values].filter((value) => value === null).length, 50);
});

test('the nearest row is found, also before the first and after the last', () => {
  const column = Float64Array.of(0, 10, 20);
  assert.deepEqual(
    [-5, 4, 6, 19, 99].map((x) => nearest(column, x)),
    [0, 0, 1, 2, 2],
  );
  assert.equal(nearest(new Float64Array(0), 1), -1);
});

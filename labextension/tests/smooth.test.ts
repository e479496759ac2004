import assert from 'node:assert/strict';
import { test } from 'node:test';
import { smooth } from '../widgets/lib/curves';

test('a constant curve stays as it is from its first value', () => {
  assert.deepEqual([...smooth(Float64Array.of(2, 2, 2), 0.9)], [2, 2, 2]);
});

test('without a weight of the past nothing changes', () => {
  assert.deepEqual([...smooth(Float64Array.of(1, 5, -3), 0)], [1, 5, -3]);
});

test('a value that is no number stays where it is and changes nothing after it', () => {
  const [first, hole, last] = smooth(Float64Array.of(4, NaN, 4), 0.5);
  assert.equal(first, 4);
  assert.ok(Number.isNaN(hole));
  assert.equal(last, 4);
});

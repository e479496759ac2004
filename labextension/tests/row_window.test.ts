import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rowWindow } from '../widgets/lib/row_window';

const VIEW = { topPx: 0, heightPx: 300, rowPx: 30 };

test('few rows are all there', () => {
  assert.deepEqual(rowWindow(5, VIEW), { first: 0, end: 5 });
  assert.deepEqual(rowWindow(0, VIEW), { first: 0, end: 0 });
});

test('of many rows those in sight are there, wherever it is scrolled to', () => {
  for (let topPx = 0; topPx <= 5000 * 30 - 300; topPx += 77) {
    const { first, end } = rowWindow(5000, { ...VIEW, topPx });
    assert.ok(first * 30 <= topPx && end * 30 >= topPx + 300, `at ${topPx}`);
    assert.ok(end - first <= 40);
  }
});

test('a small scroll exchanges nothing', () => {
  const at = rowWindow(5000, { ...VIEW, topPx: 9001 });
  assert.deepEqual(rowWindow(5000, { ...VIEW, topPx: 9100 }), at);
});

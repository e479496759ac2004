import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_TRIAL } from '../src/home/curves_wire';
import { typed } from '../widgets/lib/clone_dialog';
import type { Trial } from '../widgets/lib/frames';
import { placed } from '../widgets/lib/lineage';

function trial(number: number, parent: number | null = null): Trial {
  return { ...NO_TRIAL, number, parent, state: 'SUCCEEDED' };
}

test('a first child stays in the row of its trial, another begins one, and who has no family is left out', () => {
  const found = placed([trial(1), trial(2), trial(3, 1), trial(4, 1), trial(5, 3), trial(6, 99)]);
  const places = found.map((one) => [one.trial.number, one.generation, one.row, one.from?.trial.number]);
  assert.deepEqual(places, [
    [1, 0, 0, undefined],
    [3, 1, 0, 1],
    [5, 2, 0, 3],
    [4, 1, 1, 1],
  ]);
});

test('what is typed in place of a number is a number, and all else is JSON', () => {
  assert.equal(typed('1e-3', 0.5), 0.001);
  assert.equal(typed('"1"', 0.5), undefined);
  assert.equal(typed('fast', 0.5), undefined);
  assert.deepEqual(typed('[1, 2]', null), [1, 2]);
  assert.equal(typed('false', true), false);
});

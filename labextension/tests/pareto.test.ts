import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { Objective, Trial } from '../widgets/lib/frames';
import { paretoFront } from '../widgets/lib/pareto';

const ACC: Objective = { metric: 'acc', direction: 'maximize', label: 'acc (last)' };
const TIME: Objective = { metric: 'time', direction: 'minimize', label: 'time (last)' };

function trial(number: number, value: number | null, ...more: (number | null)[]): Trial {
  return { number, value, more_values: more } as unknown as Trial;
}

function numbers(objectives: Objective[], trials: Trial[]): number[] {
  return paretoFront(objectives, trials).map((one) => one.number);
}

test('no trial of the front is beaten in one objective without winning in another', () => {
  const trials = [trial(1, 0.9, 5), trial(2, 0.8, 2), trial(3, 0.7, 3), trial(4, 0.95, 9), trial(5, 0.9, 6)];
  assert.deepEqual(numbers([ACC, TIME], trials), [1, 2, 4]);
});

test('trials that are equal are both on it', () => {
  assert.deepEqual(numbers([ACC, TIME], [trial(2, 0.5, 1), trial(1, 0.5, 1)]), [1, 2]);
});

test('a trial without a value of each objective is not on it', () => {
  assert.deepEqual(numbers([ACC, TIME], [trial(1, 0.9, null), trial(2, null, 1), trial(3, 0.1, 4)]), [3]);
});

test('with one objective there is no front', () => {
  assert.deepEqual(numbers([ACC], [trial(1, 0.9)]), []);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nullTranslator } from '@jupyterlab/translation';
import type { StoredPlan } from '../src/api/experiment';
import { planFacts } from '../src/panel/plan';

const PLAN = {
  mesh: { axes: ['data', 'tensor'], shape: [8, 2], stages: 1 },
  cost: { step_s: 0.0123, peak_memory_bytes: 2 ** 31 },
  microbatches: 4,
  limit_bytes: 2 ** 36,
  gap: null,
} as unknown as StoredPlan;

test('a plan tells its time, its split, its memory and what is proved', () => {
  const trans = nullTranslator.load('jupyter_autotrain');
  assert.deepEqual(planFacts(PLAN, trans), [
    ['Time of a step', '12.3 ms'],
    ['Split', 'data 8 × tensor 2, 1 stage, 4 microbatches'],
    ['Memory of a rank', '2 GiB / 64 GiB'],
    ['Faster plans', 'nothing is proved'],
  ]);
  assert.deepEqual(planFacts({ ...PLAN, gap: 0.1 }, trans).at(-1), ['Faster plans', 'at most 10 %']);
});

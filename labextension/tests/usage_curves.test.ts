import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { AttemptUsage } from '../src/api/experiment';
import { usageCurves } from '../src/panel/usage_curves';
import { ENGLISH } from '../widgets/lib/translator';

const NO_GPU = { gpu_percent: null, gpu_memory_bytes: null };

function curves(...attempts: AttemptUsage[]): [number, string, (number | null)[] | undefined][] {
  const told = usageCurves(attempts, ENGLISH as unknown as TranslationBundle);
  return told.map(({ number, metric, curve }) => [number, metric, curve?.values]);
}

test('what is known of a trial makes curves by attempt, in one unit', () => {
  const first = { attempt: 1, seconds: [0, 1], cpu_percent: [50, 90], memory_bytes: [5e8, 2e9], ...NO_GPU };
  const second = { attempt: 2, seconds: [0], cpu_percent: [10], memory_bytes: [1e8], ...NO_GPU };
  assert.deepEqual(curves(first, second), [
    [1, 'CPU (%)', [50, 90]],
    [1, 'Memory (GB)', [0.5, 2]],
    [2, 'CPU (%)', [10]],
    [2, 'Memory (GB)', [0.1]],
  ]);
});

test('what is not known of GPUs at times is a gap', () => {
  const gpus = { gpu_percent: [null, 80], gpu_memory_bytes: [null, 3e6] };
  const used = { attempt: 1, seconds: [0, 1], cpu_percent: [1, 1], memory_bytes: [1e6, 1e6], ...gpus };
  assert.deepEqual(curves(used).slice(2), [
    [1, 'GPU (%)', [null, 80]],
    [1, 'GPU memory (MB)', [null, 3]],
  ]);
});

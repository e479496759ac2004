import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fits } from '../src/actions/fitting';

const running = { final: false, counts: { RUNNING: 2 } };
const failed = { final: true, counts: { SUCCEEDED: 1, FAILED: 1 } };
const cancelled = { final: true, counts: { CANCELLED: 3 } };

test('what runs is stopped, and only what has ended is deleted', () => {
  assert.ok(fits('stop', running));
  assert.ok(!fits('stop', failed));
  assert.ok(!fits('delete', running));
  assert.ok(fits('delete', cancelled));
});

test('failed trials are retried and not resumed', () => {
  assert.ok(fits('retry', failed));
  assert.ok(!fits('resume', failed));
  assert.ok(fits('resume', cancelled));
  assert.ok(!fits('retry', running));
});

test('every experiment is run again as a new one', () => {
  for (const experiment of [running, failed, cancelled]) assert.ok(fits('rerun', experiment));
});

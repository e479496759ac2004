import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ModelSignal, versionOf } from '../src/home/model_signal';

test('a change that comes before anybody has connected is still seen by its version', () => {
  const one = new ModelSignal({});
  const other = new ModelSignal({});
  const drawn = versionOf([one, other]);
  other.emit();
  assert.notEqual(versionOf([one, other]), drawn);
});

test('a change reaches who is connected, with the new version', () => {
  const changes = new ModelSignal({});
  const seen: number[] = [];
  changes.connect(() => {
    seen.push(changes.version);
  });
  changes.emit();
  changes.emit();
  assert.deepEqual(seen, [1, 2]);
});

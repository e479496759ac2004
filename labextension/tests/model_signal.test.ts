import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ModelSignal, eachChange, versionOf } from '../src/home/model_signal';

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

test('what follows each change is called for what is there already, and no more when it is ended', () => {
  const changes = new ModelSignal({});
  changes.emit();
  let calls = 0;
  const end = eachChange(() => {
    calls += 1;
  }, changes);
  assert.equal(calls, 1);
  changes.emit();
  assert.equal(calls, 2);
  end();
  changes.emit();
  assert.equal(calls, 2);
});

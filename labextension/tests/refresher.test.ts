import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { Refresher } from '../src/home/refresher';
import { Clock, turn } from './fakes';

let clock: Clock;
let runs: number;
let refresher: Refresher;

beforeEach(() => {
  clock = new Clock();
  clock.install();
  runs = 0;
  refresher = new Refresher(() => {
    runs += 1;
    return Promise.resolve();
  });
});

test('what is stopped takes nothing until it is started, and starts with nothing wanted', () => {
  refresher.soon(0);
  assert.equal(clock.waiting, 0);
  refresher.start();
  refresher.soon(0);
  assert.equal(clock.waiting, 1);
  refresher.stop();
  refresher.start();
  assert.equal(clock.waiting, 0);
  assert.equal(runs, 0);
});

test('what is wanted again while it runs is not run where it was stopped meanwhile', async () => {
  refresher.start();
  refresher.soon(0);
  clock.passAll();
  refresher.soon(0);
  refresher.stop();
  await turn();
  assert.equal(clock.waiting, 0);
  assert.equal(runs, 1);
});

test('after a task that took very long it rests for some seconds, not for a multiple of it', async () => {
  const HOUR_MS = 3_600_000;
  refresher = new Refresher(() => {
    clock.nowMs += HOUR_MS;
    return Promise.resolve();
  });
  refresher.start();
  refresher.soon(0);
  clock.passAll();
  refresher.soon(0);
  await turn();
  assert.equal(clock.passAll(), 10_000);
});

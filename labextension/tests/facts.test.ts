/** What a row says of an experiment. */

import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { facts, sessionFacts } from '../src/sidebar/facts';
import { ENGLISH } from '../widgets/lib/translator';
import { experiment } from './experiments';

test('trials that were lost are told once the experiment has ended', () => {
  const counts = { SUCCEEDED: 2, LOST: 1 };
  const ended = experiment({ state: 'SUCCEEDED', final: true, trials: 3, counts });
  assert.deepEqual(facts(ended, ENGLISH).slice(0, 2), ['3/3', '1 trial lost']);
  assert.deepEqual(facts({ ...ended, final: false }, ENGLISH), ['3/3']);
});

test('a session tells its place, its hours and its GPU hours instead of trials', () => {
  const open = experiment({ mode: 'standard', backend: 'lab', gpus: 2, created_s: 100 });
  assert.deepEqual(sessionFacts(open, 100 + 5415, ENGLISH), [
    'session on lab',
    'open for 1 h 30 min',
    'up to 3.05 GPU h',
  ]);
  const priced = { ...open, price: { hour: 5, currency: 'EUR' } };
  assert.deepEqual(sessionFacts(priced, 100 + 5400, ENGLISH).slice(2), [
    'up to 3.04 GPU h',
    'up to 7.59 EUR',
  ]);
  const started = ['open for a minute', 'up to 0.04 GPU h', 'up to 0.09 EUR'];
  assert.deepEqual(sessionFacts(priced, 40, ENGLISH).slice(1), started);
  const ended = { ...priced, final: true, took_s: 5400 };
  assert.deepEqual(sessionFacts(ended, 9000, ENGLISH).slice(1), [
    'took 1 h 30 min',
    'up to 3 GPU h',
    'up to 7.50 EUR',
  ]);
  const closed = experiment({ mode: 'standard', final: true, took_s: 5 });
  assert.deepEqual(sessionFacts(closed, 900, ENGLISH), ['session on local', 'took 5.0 s']);
});

/** What a row says of an experiment. */

import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { facts } from '../src/sidebar/facts';
import { ENGLISH } from '../widgets/lib/translator';
import { experiment } from './experiments';

test('trials that were lost are told once the experiment has ended', () => {
  const counts = { SUCCEEDED: 2, LOST: 1 };
  const ended = experiment({ state: 'SUCCEEDED', final: true, trials: 3, counts });
  assert.deepEqual(facts(ended, ENGLISH).slice(0, 2), ['3/3', '1 trial lost']);
  assert.deepEqual(facts({ ...ended, final: false }, ENGLISH), ['3/3']);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { duration, number, plain, stateWord } from '../widgets/lib/format';
import { Session } from '../widgets/lib/session';
import type { Wire } from '../widgets/lib/session';
import { ENGLISH } from '../widgets/lib/translator';
import type { Translator } from '../widgets/lib/translator';

test('a number has four digits, an exponent only where it is far from one', () => {
  const cases: [number | null, string][] = [
    [0, '0'],
    [0.123456, '0.1235'],
    [12345.6, '12350'],
    [0.00012, '1.2e-4'],
    [5e6, '5e6'],
    [NaN, 'NaN'],
    [Infinity, 'Infinity'],
    [null, '–'],
  ];
  for (const [value, text] of cases) assert.equal(number(value), text);
});

test('a duration never reads as sixty of something', () => {
  const cases: [number, string][] = [
    [-1, '0.0 s'],
    [9.94, '9.9 s'],
    [59.4, '59 s'],
    [60, '1 min'],
    [3599.7, '1 h'],
    [3661, '1 h 01 min'],
  ];
  for (const [seconds, text] of cases) assert.equal(duration(seconds), text);
});

test('parameters read as in Python, and a nested choice as a call', () => {
  assert.equal(plain(null), 'None');
  assert.equal(plain(true), 'True');
  assert.equal(plain([1, 2]), '[1,2]');
  assert.equal(plain({ _name: 'big', width: 15, depth: 1.7964 }), 'big(width=15 depth=1.796)');
});

test('one of something is not many of it', () => {
  assert.equal(ENGLISH._n('%1 trial', '%1 trials', 1), '1 trial');
  assert.equal(ENGLISH._n('%2 of %1 trial', '%2 of %1 trials', 0, 5), '5 of 0 trials');
  assert.equal(stateWord('EARLY_STOPPED', ENGLISH), 'Early stopped');
});

test('a translator is asked for every word, and gets the values', () => {
  const asked: unknown[][] = [];
  const trans: Translator = {
    __: (text, ...values) => {
      asked.push([text, ...values]);
      return `<${text}>`;
    },
    _n: (one) => one,
  };
  assert.equal(stateWord('FAILED', trans), '<Failed>');
  assert.equal(new Session(SILENT, trans).names.nameOf(3), '<trial %1>');
  assert.deepEqual(asked.at(-1), ['trial %1', 3]);
});

const nothing = (): void => undefined;
const SILENT: Wire = { get: () => ({}), send: nothing, on: nothing, off: nothing };

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { count, duration, number, plain, stateWord } from '../widgets/lib/format';

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
    [60, '1 min 00 s'],
    [3599.7, '1 h 00 min'],
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
  assert.equal(count(1, 'trial'), '1 trial');
  assert.equal(count(0, 'trial'), '0 trials');
  assert.equal(stateWord('EARLY_STOPPED'), 'Early stopped');
});

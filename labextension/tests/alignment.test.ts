import assert from 'node:assert/strict';
import { test } from 'node:test';
import { searchText } from '../src/api/search_text';
import { alignedRows, uniqueIds } from '../src/compare/alignment';

test('what differs comes first, in the order in which it came', () => {
  const rows = alignedRows([
    new Map<string, number | string>([
      ['lr', 0.1],
      ['width', 32],
      ['kind', 'a'],
    ]),
    new Map<string, number | string>([
      ['lr', 0.1],
      ['width', 64],
      ['kind', 'b'],
    ]),
  ]);
  assert.deepEqual(
    rows.map(({ name, differs }) => [name, differs]),
    [
      ['width', true],
      ['kind', true],
      ['lr', false],
    ],
  );
});

test('what only one has differs, what is not loaded yet does not', () => {
  const [only] = alignedRows([new Map([['depth', 3]]), new Map()]);
  assert.deepEqual(only, { name: 'depth', texts: ['3', ''], differs: true });
  const [waiting] = alignedRows([new Map([['depth', 3]]), undefined]);
  assert.equal(waiting?.differs, false);
});

test('numbers that differ behind the fourth digit read differently', () => {
  const [row] = alignedRows([new Map([['lr', 0.1234561]]), new Map([['lr', 0.1234562]])]);
  assert.deepEqual(row, { name: 'lr', texts: ['0.1234561', '0.1234562'], differs: true });
});

test('a number and its text are different', () => {
  const [row] = alignedRows([new Map([['n', 1]]), new Map([['n', '1']])]);
  assert.deepEqual(row, { name: 'n', texts: ['1', '"1"'], differs: true });
});

test('a space reads as its kind with what is set of it', () => {
  const space = { kind: 'uniform', low: 0.0001, high: 1, log: true, q: null };
  assert.equal(searchText(space), 'uniform(low=0.0001, high=1, log=true)');
  assert.equal(searchText({ kind: 'choice', options: ['a', 8] }), 'choice(options=["a",8])');
});

test('ids come once each, and only texts are ids', () => {
  assert.deepEqual(uniqueIds(['a', 'b', 'a', 3, '']), ['a', 'b']);
  assert.deepEqual(uniqueIds(undefined), []);
});

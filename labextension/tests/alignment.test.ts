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

test('a space reads as a header says it', () => {
  const uniform = { kind: 'uniform', low: 1e-6, high: 0.1, log: false, q: null };
  assert.equal(searchText(uniform), 'uniform(1e-6, 0.1)');
  assert.equal(searchText({ ...uniform, log: true }), 'loguniform(1e-6, 0.1)');
  assert.equal(searchText({ ...uniform, q: 0.5 }), 'quniform(1e-6, 0.1, 0.5)');
  assert.equal(searchText({ ...uniform, log: true, q: 2 }), 'qloguniform(1e-6, 0.1, 2)');
  const normal = { kind: 'normal', mu: 0, sigma: 2e6, log: false, q: null };
  assert.equal(searchText(normal), 'normal(0, 2e6)');
  assert.equal(searchText({ ...normal, log: true }), 'lognormal(0, 2e6)');
  assert.equal(searchText({ ...normal, q: 1 }), 'qnormal(0, 2e6, 1)');
  assert.equal(searchText({ ...normal, log: true, q: 1 }), 'qlognormal(0, 2e6, 1)');
  assert.equal(searchText({ kind: 'randint', low: 1, high: 9 }), 'randint(1, 9)');
  const options = ['adam', 8, '8', 'a b', true, null];
  assert.equal(searchText({ kind: 'choice', options }), 'choice(adam, 8, "8", "a b", true, null)');
  const nested = { kind: 'nested', name: 'mlp', space: { width: { kind: 'choice', options: [32, 64] } } };
  assert.equal(
    searchText({ kind: 'choice', options: [nested, 'linear'] }),
    'choice({_name: mlp, width: choice(32, 64)}, linear)',
  );
});

test('ids come once each, and only texts are ids', () => {
  assert.deepEqual(uniqueIds(['a', 'b', 'a', 3, '']), ['a', 'b']);
  assert.deepEqual(uniqueIds(undefined), []);
});

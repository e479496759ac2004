import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changes, folded, lineDiff, plainLines } from '../src/code/line_diff';

function signs(left: string, right: string): string[] {
  const marks = { same: ' ', removed: '-', added: '+' };
  return lineDiff(left, right).map(({ kind, text }) => `${marks[kind]}${text}`);
}

test('lines that only one text has are told, with the numbers that they have in it', () => {
  assert.deepEqual(signs('a\nb\nc\n', 'a\nB\nc\nd\n'), [' a', '-b', '+B', ' c', '+d']);
  const numbers = lineDiff('a\nb\nc\n', 'a\nB\nc\nd\n').map(({ left, right }) => [left, right]);
  assert.deepEqual(numbers, [
    [1, 1],
    [2, undefined],
    [undefined, 2],
    [3, 3],
    [undefined, 4],
  ]);
});

test('a missing end of the last line is no difference', () => {
  assert.deepEqual(signs('a\nb', 'a\nb\n'), [' a', ' b']);
});

test('an empty text has no lines', () => {
  assert.deepEqual(lineDiff('', ''), []);
  assert.deepEqual(plainLines(''), []);
  assert.deepEqual(signs('', 'a\n\nb\n'), ['+a', '+', '+b']);
});

test('equal lines far from any change are folded, and none is lost', () => {
  const left = Array.from({ length: 40 }, (_, i) => `line ${i}`);
  const right = left.map((line, i) => (i === 20 ? 'changed' : line));
  const lines = lineDiff(left.join('\n'), right.join('\n'));
  const parts = folded(lines);
  assert.deepEqual(
    parts.map((part) => ('skipped' in part ? -part.skipped.length : part.lines.length)),
    [-17, 8, -16],
  );
  const again = parts.flatMap((part) => ('skipped' in part ? part.skipped : part.lines));
  assert.deepEqual(again, lines);
  assert.deepEqual(changes(lines), { removed: 1, added: 1 });
});

test('a short stretch between two changes stays', () => {
  const lines = lineDiff('x\n1\n2\n3\n4\n5\n6\n7\ny\n', 'X\n1\n2\n3\n4\n5\n6\n7\nY\n');
  assert.equal(folded(lines).length, 1);
});

test('texts that have nothing in common replace each other', () => {
  const text = (seed: number): string => Array.from({ length: 3000 }, (_, i) => `${seed} ${i}`).join('\n');
  assert.deepEqual(changes(lineDiff(text(1), text(2))), { removed: 3000, added: 3000 });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  headerEndsWithin,
  headerRows,
  headerTokens,
  isExperiment,
  isEmptyInHeader,
} from '../src/header/header_lines';

/** Each token as `kind text`. */
function told(text: string): string[] {
  return headerTokens(text).map(({ from, to, kind }) => `${kind} ${text.slice(from, to)}`);
}

test('only a cell that begins with the magic is an experiment', () => {
  assert.ok(isExperiment('%%autotrain'));
  assert.ok(isExperiment('%%autotrain name\n1'));
  assert.ok(!isExperiment('%%autotrainer'));
  assert.ok(!isExperiment(' %%autotrain'));
  assert.deepEqual(told('objective: maximize a\n---\n'), []);
});

test('a header ends at the first rule, also where it begins with one', () => {
  assert.deepEqual(headerRows(['%%autotrain', 'trials: 3', '---', 'x = 1', '---']), [1, 2]);
  assert.deepEqual(headerRows(['%%autotrain', '', '---', 'trials: 3', '---', 'x = 1']), [2, 3, 4]);
});

test('leading comments are a header too, and without either there is none', () => {
  assert.deepEqual(headerRows(['%%autotrain', '#| trials: 3', '#| seed: 1', 'x = 1']), [1, 2]);
  assert.deepEqual(headerRows(['%%autotrain', 'x: int = 1', 'y = 2']), []);
  assert.deepEqual(headerRows(['%%autotrain']), []);
});

test('the magic line has a name, flags and a comment', () => {
  assert.deepEqual(told('%%autotrain digits -j 2 --wait # soon'), [
    'magic %%autotrain', 'text digits', 'flag -j', 'text 2', 'flag --wait', 'comment # soon',
  ]); // prettier-ignore
});

test('keys, values, calls and comments are told apart', () => {
  const text =
    "%%autotrain\nobjective: maximize val_acc  # best\nlr: loguniform(1e-4, .1)\nname: 'a # b'\n---\nx";
  assert.deepEqual(told(text).slice(1), [
    'key objective', 'atom maximize', 'text val_acc', 'comment # best',
    'key lr', 'call loguniform', 'number 1e-4', 'number .1',
    "key name", "string 'a # b'", 'rule ---',
  ]); // prettier-ignore
});

test('keys inside brackets and list items are keys', () => {
  const text = '%%autotrain\nresources: {gpus: 1, memory: 8GB}\nbackend:\n  - name: lab\n---\n';
  assert.deepEqual(told(text).slice(1), [
    'key resources', 'key gpus', 'number 1', 'key memory', 'number 8GB', 'key backend', 'key name', 'text lab', 'rule ---',
  ]); // prettier-ignore
});

test('offsets count the text as the editor does, in UTF-16', () => {
  const text = '%%autotrain 𝛼\n#| trials: 3\npass';
  assert.deepEqual(told(text).slice(1), ['text 𝛼', 'comment #|', 'key trials', 'number 3']);
});

test('of a long cell it is known whether its top holds the header', () => {
  const text = `%%autotrain\nseed: 1\n---\n${'x = 1\n'.repeat(100)}`;
  assert.ok(headerEndsWithin(text, 40));
  assert.ok(!headerEndsWithin(text, 20));
  assert.ok(headerEndsWithin('%%autotrain\nseed: 1', 40));
});

test('a header goes on at an empty row below its keys, and not below code or its end', () => {
  const rows = ['%%autotrain x', 'trials: 3', 'search:', '  lr: [1, 2]', ''];
  assert.ok(isEmptyInHeader(rows, 4));
  assert.ok(isEmptyInHeader(['%%autotrain', '---', ''], 2));
  assert.ok(!isEmptyInHeader(rows, 1));
  assert.ok(!isEmptyInHeader(['%%autotrain', 'x = 1', ''], 2));
  assert.ok(!isEmptyInHeader(['%%autotrain', 'trials: 3', '---', ''], 3));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tagsIn } from '../src/sidebar/editor';
import { NOTHING, extended, kept, neighbour, only, selected, toggled } from '../src/sidebar/picked';
import { orderOf } from '../src/sidebar/preferences';
import { Selection } from '../src/actions/selection';
import { fileName, sections, visibleRows } from '../src/sidebar/sections';
import { TreeModel } from '../src/sidebar/tree_model';
import { experiment, listOf } from './experiments';

const RUNNING = experiment({ id: 'r', group: 'running', notebook: '/notebooks/a.ipynb' });
const DONE = experiment({ id: 'd', group: 'done', notebook: '/notebooks/b.ipynb' });
const LATER = experiment({ id: 'l', group: 'running', notebook: '/notebooks/b.ipynb' });

test('experiments are grouped by state in the order of the states', () => {
  const shown = sections([DONE, RUNNING, LATER], 'state');
  assert.deepEqual(
    shown.map((section) => [section.of, section.experiments.map((each) => each.id)]),
    [
      ['running', ['r', 'l']],
      ['done', ['d']],
    ],
  );
});

test('experiments are grouped by notebook in the order of the list', () => {
  const shown = sections([DONE, RUNNING, LATER], 'notebook');
  assert.deepEqual(
    shown.map((section) => [fileName(section.of), section.experiments.length]),
    [
      ['b.ipynb', 2],
      ['a.ipynb', 1],
    ],
  );
});

test('a folded section shows none of its experiments', () => {
  const shown = sections([DONE, RUNNING], 'state');
  assert.deepEqual(visibleRows(shown, new Set(['section:running'])), [
    'section:running',
    'section:done',
    'd',
  ]);
});

const ROWS = ['section:running', 'r', 'l', 'section:done', 'd'];

test('a range is chosen from where it began, either way, without headings', () => {
  assert.deepEqual(extended(only('r'), 'd', ROWS).chosen, ['r', 'l', 'd']);
  assert.deepEqual(extended(only('d'), 'r', ROWS).chosen, ['r', 'l', 'd']);
  assert.deepEqual(extended(extended(only('r'), 'd', ROWS), 'l', ROWS).chosen, ['r', 'l']);
});

test('single rows are added and taken away', () => {
  const two = toggled(toggled(NOTHING, 'd'), 'r');
  assert.deepEqual(two.chosen, ['d', 'r']);
  assert.deepEqual(toggled(two, 'd').chosen, ['r']);
  assert.deepEqual(toggled(two, 'section:done').chosen, ['d', 'r']);
});

test('going to a row chooses none: five that are ticked after it are five', () => {
  let picked = only('x');
  for (const id of ['a', 'b', 'c', 'd', 'e']) picked = toggled(picked, id);
  assert.deepEqual(selected(picked), ['a', 'b', 'c', 'd', 'e']);
  assert.deepEqual(selected(only('x')), ['x']);
  assert.deepEqual(selected(only('section:done')), []);
});

test('of two lists the one that was used last selects, also when the other one is loaded again', () => {
  const selection = new Selection();
  const [used, other] = [new TreeModel(selection), new TreeModel(selection)];
  for (const tree of [used, other]) tree.take(listOf([RUNNING, DONE]), 'state');
  other.pick(only('d'));
  used.pick(only('r'));
  other.take(listOf([DONE]), 'state');
  assert.deepEqual(
    selection.experiments.map(({ id }) => id),
    ['r'],
  );
  used.take(listOf([DONE]), 'state');
  assert.deepEqual(selection.experiments, []);
});

test('the focus stays within the rows', () => {
  assert.equal(neighbour(only('r'), -5, ROWS), 'section:running');
  assert.equal(neighbour(only('d'), 1, ROWS), 'd');
  assert.equal(neighbour(NOTHING, 1, ROWS), 'section:running');
});

test('what is no longer listed is no longer chosen', () => {
  const picked = { focused: 'd', anchor: 'd', chosen: ['d', 'r'] };
  assert.deepEqual(kept(picked, new Set(['r'])).chosen, ['r']);
  assert.equal(kept(picked, new Set(['r', 'd'])), picked);
});

test('what is typed of tags and note stays when the list is loaded again', () => {
  const tree = new TreeModel(new Selection());
  const shown = { ...RUNNING, tags: ['paper'], note: 'short' };
  tree.take(listOf([shown]), 'state');
  tree.edit('r');
  assert.deepEqual(tree.draft, { id: 'r', tags: 'paper', note: 'short' });
  tree.draft.note = 'longer';
  tree.take(listOf([{ ...shown, group: 'done' }]), 'state');
  assert.equal(tree.draft.note, 'longer');
  tree.endEdit();
  assert.equal(tree.draft, null);
});

test('tags are read from a text with commas, each once', () => {
  assert.deepEqual(tagsIn(' paper, baseline ,,paper'), ['paper', 'baseline']);
  assert.deepEqual(tagsIn('  '), []);
});

test('names begin with a, everything else with the newest or best', () => {
  const grouping = 'notebook';
  assert.equal(orderOf({ sort: 'name', isReversed: false, grouping }).order, 'ascending');
  assert.equal(orderOf({ sort: 'best', isReversed: false, grouping }).order, 'descending');
  assert.equal(orderOf({ sort: 'name', isReversed: true, grouping }).order, 'descending');
});

test('under headings of states the list is asked for in their order, so that a page has what runs', () => {
  const byName = { sort: 'name', isReversed: false } as const;
  assert.equal(orderOf({ ...byName, grouping: 'state' }).grouping, 'state');
  assert.equal(orderOf({ ...byName, grouping: 'notebook' }).grouping, 'none');
});

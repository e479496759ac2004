import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OpenedViews } from '../src/notebook/opened_views';
import { VIEW_OPENED } from '../widgets/lib/opened';
import { Clock } from './fakes';

class Opened extends Event {
  constructor(readonly detail: unknown) {
    super(VIEW_OPENED);
  }
}

test('a view is there once its model has been opened, and not in a notebook that was opened after that', () => {
  const clock = new Clock();
  clock.install();
  const page = new EventTarget();
  const views = new OpenedViews(page);
  const told: string[] = [];
  views.opened.connect((_, id) => told.push(id));
  const [notebook, console] = [{}, {}];
  clock.nowMs = 1;
  views.begin(notebook);
  assert.equal(views.has('a', notebook), false);
  clock.nowMs = 2;
  page.dispatchEvent(new Opened('a'));
  page.dispatchEvent(new Opened(undefined));
  assert.deepEqual(told, ['a']);
  assert.ok(views.has('a', notebook) && views.has('a', console));
  clock.nowMs = 3;
  const again = {};
  views.begin(again);
  assert.equal(views.has('a', again), false);
  clock.nowMs = 4;
  page.dispatchEvent(new Opened('a'));
  assert.ok(views.has('a', again));
});

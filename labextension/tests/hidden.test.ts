/** What is hidden, or closed, asks the server nothing and waits for nothing, whatever was under way. */

import { asked } from './fake_server';
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { PageConfig } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { RunsModel } from '../src/compare/runs_model';
import type { Changes } from '../src/home/changes';
import { RestWire } from '../src/home/rest_wire';
import { PlacesModel } from '../src/places/places_model';
import { ListModel } from '../src/sidebar/list_model';
import { SummaryModel } from '../src/summary/summary_model';
import { ENGLISH } from '../widgets/lib/translator';
import { Clock, FakeChanges, turn } from './fakes';

const STATE = { changes: [{ id: 1, experiment: 'e', kind: 'state' as const }] };
const stop = (): Promise<void> => Promise.resolve();
const TRANS = ENGLISH as unknown as TranslationBundle;
const VIEWS: [string, (changes: Changes) => { follow(): Promise<void>; rest(): void }][] = [
  ['a list', (changes) => new ListModel(changes)],
  ['a summary', (changes) => new SummaryModel(changes)],
  ['an experiment', (changes) => new RestWire('e', changes, { stop })],
  ['a comparison', (changes) => new RunsModel(['e'], changes, TRANS)],
  ['the places', (changes) => new PlacesModel(changes)],
];

let clock: Clock;
let changes: FakeChanges;

beforeEach(() => {
  asked.length = 0;
  clock = new Clock();
  clock.install();
  changes = new FakeChanges();
  PageConfig.setOption('baseUrl', 'http://lab.test/');
});

async function settled(): Promise<void> {
  for (let i = 0; i < 5; i++) await turn();
}

for (const [name, make] of VIEWS) {
  test(`${name} that is hidden before the socket is open asks nothing`, async () => {
    const view = make(changes);
    const following = view.follow();
    view.rest();
    await following;
    await settled();
    assert.equal(clock.waiting + asked.length, 0);
  });

  test(`${name} that is hidden while it loads waits for nothing, also where that fails`, async () => {
    const view = make(changes);
    void view.follow();
    await settled();
    clock.passAll();
    await settled();
    changes.tell(STATE);
    assert.ok(asked.length > 0);
    view.rest();
    for (const one of asked.splice(0)) await one.fail();
    assert.equal(clock.waiting + asked.length, 0);
  });
}

test('an experiment that is hidden while it loads does not ask for its curves and pictures', async () => {
  const wire = new RestWire('e', changes, { stop });
  await wire.follow();
  clock.passAll();
  await settled();
  wire.rest();
  const details = { metrics: ['acc'], warnings: [], resources: {}, objective: null, best: null };
  await asked.shift()?.answer(details);
  await asked.shift()?.answer({ total: 0, last_state_change: 1, trials: [] });
  assert.equal(wire.details?.metrics.length, 1);
  assert.equal(clock.waiting + asked.length, 0);
});

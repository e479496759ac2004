import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Experiment } from '../src/api/experiments';
import { Refusal } from '../src/api/request';
import { chartCell } from '../src/notebook/chart_cell';
import { findCell } from '../src/notebook/find_cell';
import { RunStates } from '../src/notebook/run_states';
import { snapshotOf } from '../src/notebook/stored_frames';
import { RUN_MIME_TYPE, runsIn, storedRun } from '../src/notebook/stored_run';
import { FakeChanges } from './fakes';

const STORED = {
  version: 1,
  id: 'e1',
  name: 'digits',
  state: 'RUNNING',
  trials: 2,
  counts: { RUNNING: 1 },
  curves: [{ metric: 'acc', trial: 1, steps: [1, 2], values: [0.5, null] }],
};

test('a stored run is read, and without what is no curve in it', () => {
  const broken = [{ metric: 'acc', trial: 1, steps: [1], values: [] }, 'curve', { metric: 3 }];
  assert.equal(storedRun({ ...STORED, curves: [...STORED.curves, ...broken] })?.curves.length, 1);
});

test('what is no run, or of a later version, or has an id that leads elsewhere is none', () => {
  for (const data of [undefined, 'run', [], {}, { ...STORED, version: 2 }, { ...STORED, id: '../x' }])
    assert.equal(storedRun(data), undefined);
  assert.equal(storedRun({ ...STORED, counts: null }), undefined);
});

test('runs are found in the outputs of a cell, in their order', () => {
  const outputs = [
    { 'text/plain': 'x' },
    { [RUN_MIME_TYPE]: STORED },
    { [RUN_MIME_TYPE]: { ...STORED, id: 'e2' } },
  ];
  assert.deepEqual(
    runsIn(outputs).map(({ id }) => id),
    ['e1', 'e2'],
  );
});

const CELL = '%%autotrain digits\ntrials: 3\n---\nfor i in range(3):\n    report(acc=i)\n';
const SCRIPT = 'import math\n\nfor i in range(3):\n    report(acc=i)\n';
const MAP = ['', '', 'this cell:4', 'this cell:5'];

test('a cell is found by its output before a cell that only shows the experiment', () => {
  const cells = [
    { source: '%autotrain show digits', runs: ['e1'] },
    { source: CELL, runs: ['e1'] },
  ];
  assert.equal(findCell(cells, 'e1', '', []), 1);
  assert.equal(findCell(cells.slice(0, 1), 'e1', '', []), 0);
});

test('a cell that was run again is found by the code that was captured, also where half of it was changed', () => {
  const cells = [
    { source: 'import math', runs: [] },
    { source: CELL.replace('acc=i', 'acc=2 * i'), runs: ['e2'] },
  ];
  assert.equal(findCell(cells, 'e1', SCRIPT, MAP), 1);
  assert.equal(findCell([{ source: 'x\n'.repeat(9), runs: [] }], 'e1', SCRIPT, MAP), -1);
});

/** States of which each load is told and counted. */
function opened(failures: Error[] = []): {
  states: RunStates;
  changes: FakeChanges;
  asked: string[];
  told: () => Promise<string>;
} {
  const changes = new FakeChanges();
  const asked: string[] = [];
  const states = new RunStates(changes, (id) => {
    asked.push(id);
    const failure = failures.shift();
    return failure ? Promise.reject(failure) : Promise.resolve({ id, state: 'RUNNING' } as Experiment);
  });
  const told = (): Promise<string> =>
    new Promise((resolve) => {
      const once = (_: RunStates, id: string): void => {
        states.changed.disconnect(once);
        resolve(id);
      };
      states.changed.connect(once);
    });
  return { states, changes, asked, told };
}

test('a run is asked when it is watched and when it has changed, and no other', async () => {
  const { states, changes, asked, told } = opened();
  const first = told();
  states.watch('e1');
  assert.equal(await first, 'e1');
  assert.equal(states.get('e1')?.state, 'RUNNING');
  const second = told();
  changes.tell({
    changes: [
      { id: 1, experiment: 'e2', kind: 'state' },
      { id: 2, experiment: 'e1', kind: 'metrics' },
      { id: 3, experiment: 'e1', kind: 'state' },
    ],
  });
  assert.equal(await second, 'e1');
  assert.deepEqual(asked, ['e1', 'e1']);
});

test('after a reset all that are watched are asked again', async () => {
  const { states, changes, asked, told } = opened();
  const first = told();
  states.watch('e1');
  await first;
  const second = told();
  changes.tell({ reset: true });
  await second;
  assert.deepEqual(asked, ['e1', 'e1']);
});

test('a run that the server does not know has no state', async () => {
  const { states, changes, asked, told } = opened([new Refusal('There is no experiment gone.', 404)]);
  const first = told();
  states.watch('gone');
  await first;
  assert.equal(states.get('gone'), undefined);
  const second = told();
  changes.connect(true);
  states.watch('e1');
  assert.equal(await second, 'e1');
  assert.deepEqual(asked, ['gone', 'e1']);
});

test('a run whose state could not be asked is asked when the connection is back', async () => {
  const { states, changes, told } = opened([new Error('The server does not answer.')]);
  const first = told();
  states.watch('e1');
  await first;
  assert.equal(states.get('e1'), undefined);
  const second = told();
  changes.connect(true);
  assert.equal(await second, 'e1');
  assert.equal(states.get('e1')?.state, 'RUNNING');
});

test('nobody is followed when nothing is watched any more', async () => {
  const { states, changes, told } = opened();
  const first = told();
  states.watch('e1');
  states.watch('e1');
  await first;
  states.unwatch('e1');
  assert.equal(changes.followers.size, 1);
  states.unwatch('e1');
  assert.equal(changes.followers.size, 0);
  assert.equal(states.get('e1'), undefined);
});

test('what is kept of a run is drawn as frames are: its curves, and as many trials as there were', () => {
  const kept = { ...STORED, counts: { RUNNING: 1, SUCCEEDED: 2 }, best: { trial: 3, value: 0.9 }, trials: 4 };
  const run = storedRun(kept);
  assert.ok(run);
  const { experiment, trials, series, values } = snapshotOf(run);
  assert.deepEqual([experiment.name, experiment.best, experiment.trials], ['digits', 3, 4]);
  assert.deepEqual(
    trials.map(({ number, state }) => `${number} ${state}`),
    ['3 SUCCEEDED', '1 SUCCEEDED', '2 RUNNING'],
  );
  assert.deepEqual(series, [['acc', 1, 1, 0, 2]]);
  assert.equal(values.byteLength, 16);
  assert.ok(Number.isNaN(values.getFloat64(8, true)));
});

test('a chart becomes a cell that holds its picture, and names are no Markdown in it', () => {
  const cell = chartCell('e1', 'digits](http://x) <b>', 'val_acc', 'AAAA');
  assert.deepEqual(Object.keys(cell.attachments), ['digits__http_x___b_-val_acc.png']);
  assert.equal(
    cell.source,
    '![val_acc of digits__http://x_ _b_](attachment:digits__http_x___b_-val_acc.png)\n\n' +
      'val_acc of digits__http://x_ _b_; live: `%autotrain show digits__http://x_ _b_`',
  );
  assert.ok(chartCell('', 'comparison', 'loss', 'AAAA').source.endsWith('\n\nloss of comparison'));
});

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { PageConfig } from '@jupyterlab/coreutils';
import { ChangeHub } from '../src/home/changes';
import type { ChangeMessage } from '../src/home/changes';
import { Clock, FakeSocket, turn } from './fakes';

let clock: Clock;

beforeEach(() => {
  clock = new Clock();
  FakeSocket.opened = [];
  Object.assign(globalThis, { window: clock, WebSocket: FakeSocket });
  PageConfig.setOption('baseUrl', 'http://lab.test/user/ada/');
  PageConfig.setOption('wsUrl', 'ws://lab.test/user/ada/');
});

/** A follower that keeps all it is told. */
class Kept {
  readonly messages: ChangeMessage[] = [];
  readonly connections: boolean[] = [];

  onMessage(message: ChangeMessage): void {
    this.messages.push(message);
  }

  onConnection(isConnected: boolean): void {
    this.connections.push(isConnected);
  }
}

function changes(...ids: number[]): ChangeMessage {
  const found = ids.map((id) => ({ id, experiment: 'e', kind: 'state' as const }));
  return { changes: found, last_id: Math.max(...ids), reset: false };
}

test('the socket is below the base URL and begins at what changes from now on', () => {
  new ChangeHub().follow(new Kept());
  const url = new URL(FakeSocket.newest().url);
  assert.equal(url.pathname, '/user/ada/jupyter-autotrain/api/changes');
  assert.equal(url.searchParams.get('since'), null);
});

test('one socket serves all followers, and is closed with the last of them', () => {
  const hub = new ChangeHub();
  const [first, second] = [new Kept(), new Kept()];
  const following = [hub.follow(first), hub.follow(second)];
  assert.equal(FakeSocket.opened.length, 1);
  FakeSocket.newest().open();
  FakeSocket.newest().tell(changes(4));
  assert.deepEqual([first.messages.length, second.messages.length], [1, 1]);
  following[0]?.dispose();
  assert.equal(FakeSocket.newest().isClosed, false);
  following[1]?.dispose();
  assert.equal(FakeSocket.newest().isClosed, true);
});

test('a lost connection is opened again from the last id that was told', () => {
  const follower = new Kept();
  new ChangeHub().follow(follower);
  FakeSocket.newest().open();
  FakeSocket.newest().tell(changes(7, 9));
  FakeSocket.newest().lose();
  assert.deepEqual(follower.connections, [true, false]);
  clock.passAll();
  assert.equal(FakeSocket.opened.length, 2);
  assert.equal(new URL(FakeSocket.newest().url).searchParams.get('since'), '9');
  FakeSocket.newest().open();
  FakeSocket.newest().tell(changes(10));
  const ids = follower.messages.flatMap((message) => message.changes.map(({ id }) => id));
  assert.deepEqual(ids, [7, 9, 10]);
  assert.deepEqual(follower.connections, [true, false, true]);
});

test('a connection that is lost before any message means: load again', () => {
  const follower = new Kept();
  new ChangeHub().follow(follower);
  FakeSocket.newest().open();
  FakeSocket.newest().lose();
  clock.passAll();
  FakeSocket.newest().open();
  assert.deepEqual(
    follower.messages.map(({ reset }) => reset),
    [true],
  );
});

test('a socket of before tells nobody anything', () => {
  const follower = new Kept();
  const following = new ChangeHub().follow(follower);
  const socket = FakeSocket.newest();
  socket.open();
  following.dispose();
  socket.tell(changes(5));
  socket.lose();
  clock.passAll();
  assert.equal(follower.messages.length, 0);
  assert.equal(FakeSocket.opened.length, 1);
});

test('each failed try waits longer, up to a limit, and after a success the first pause is short again', () => {
  new ChangeHub().follow(new Kept());
  const pauses: number[] = [];
  for (let i = 0; i < 8; i++) {
    FakeSocket.newest().lose();
    pauses.push(clock.passAll());
  }
  assert.deepEqual(pauses, [500, 1000, 2000, 4000, 4000, 4000, 4000, 4000]);
  FakeSocket.newest().open();
  FakeSocket.newest().lose();
  assert.equal(clock.passAll(), 500);
});

test('ready means that the first try has succeeded or failed', async () => {
  const hub = new ChangeHub();
  let isReady = false;
  void hub.follow(new Kept()).ready.then(() => (isReady = true));
  await turn();
  assert.equal(isReady, false);
  FakeSocket.newest().lose();
  await turn();
  assert.equal(isReady, true);
});

test('who follows later is told of the connection as it is', () => {
  const hub = new ChangeHub();
  hub.follow(new Kept());
  const early = new Kept();
  hub.follow(early);
  assert.deepEqual(early.connections, []);
  FakeSocket.newest().open();
  FakeSocket.newest().lose();
  const [hidden, shown] = [new Kept(), new Kept()];
  hub.follow(hidden).dispose();
  clock.passAll();
  FakeSocket.newest().open();
  hub.follow(shown);
  assert.deepEqual(hidden.connections, [false]);
  assert.deepEqual(shown.connections, [true]);
});

test('who is the first to follow again is told when the new socket is open, not of the one before', () => {
  const hub = new ChangeHub();
  const following = hub.follow(new Kept());
  FakeSocket.newest().open();
  FakeSocket.newest().lose();
  following.dispose();
  const again = new Kept();
  hub.follow(again);
  assert.deepEqual(again.connections, []);
  FakeSocket.newest().open();
  assert.deepEqual(again.connections, [true]);
});

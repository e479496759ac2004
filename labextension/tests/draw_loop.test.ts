import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drawLoop } from '../widgets/lib/draw_loop';
import { Session } from '../widgets/lib/session';
import type { Wire } from '../widgets/lib/session';

const WIRE: Wire = { get: () => ({}), send: () => undefined, on: () => undefined, off: () => undefined };

test('a view draws at once what its session held before, and each change after that', () => {
  const frames: (() => void)[] = [];
  const drawn: string[] = [];
  Object.assign(globalThis, {
    window: { setInterval: () => 0, clearInterval: () => undefined, clearTimeout: () => undefined },
    requestAnimationFrame: (draw: () => void) => frames.push(draw),
    cancelAnimationFrame: () => undefined,
  });
  const session = new Session(WIRE);
  session.receipt = 'before';
  const end = drawLoop(session, [{ update: () => drawn.push(session.receipt) }]);
  assert.deepEqual(drawn, ['before']);
  session.receipt = 'after';
  session.choose({});
  frames.pop()?.();
  assert.deepEqual(drawn, ['before', 'after']);
  end();
});

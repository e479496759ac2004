import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogQuery, LogWindow } from '../src/api/experiment';
import { LogFollower, lastLines, terminalText } from '../src/home/log_follower';
import type { LogTail } from '../widgets/lib/frames';
import { turn } from './fakes';

const CHOICE = { trial: 1, stream: 'stdout', rank: 0 };

function windowOf(text: string, begin: number, changes: Partial<LogWindow> = {}): LogWindow {
  const end = begin + text.length;
  return { text, begin_bytes: begin, end_bytes: end, size_bytes: end, attempt: 1, final: true, ...changes };
}

function following(windows: LogWindow[]): { asked: LogQuery[]; told: LogTail[]; follower: LogFollower } {
  const asked: LogQuery[] = [];
  const told: LogTail[] = [];
  const ask = (query: LogQuery): Promise<LogWindow> => {
    asked.push(query);
    return Promise.resolve(windows[asked.length - 1] ?? windowOf('', query.beginBytes ?? 0));
  };
  return { asked, told, follower: new LogFollower(ask, (tail) => told.push(tail)) };
}

test('a log is read from its end, and then from where it was read to', async () => {
  const { asked, told, follower } = following([windowOf('one\n', 10), windowOf('two\n', 14)]);
  follower.follow(CHOICE);
  await turn();
  follower.go();
  await turn();
  assert.deepEqual(
    asked.map(({ beginBytes }) => beginBytes),
    [undefined, 14],
  );
  assert.equal(told.at(-1)?.text, 'one\ntwo\n');
  assert.equal(told.at(-1)?.left_out, '10 B');
});

test('another attempt begins a text of its own', async () => {
  const { told, follower } = following([windowOf('old\n', 0), windowOf('new\n', 0, { attempt: 2 })]);
  follower.follow(CHOICE);
  await turn();
  follower.go();
  await turn();
  assert.equal(told.at(-1)?.text, 'new\n');
});

test('what is answered after another log was chosen is dropped', async () => {
  const { told, follower } = following([windowOf('first\n', 0), windowOf('second\n', 0)]);
  follower.follow(CHOICE);
  follower.follow({ ...CHOICE, trial: 2 });
  await turn();
  assert.deepEqual(
    told.map(({ trial, text }) => [trial, text]),
    [[2, 'second\n']],
  );
});

test('only the last lines stay', () => {
  const lines = Array.from({ length: 500 }, (_, i) => `line ${i}`);
  assert.equal(lastLines(lines.join('\n')).split('\n')[0], 'line 300');
  assert.equal(lastLines('x'.repeat(1e6)).length, 65_536);
});

test('a line that was written over shows its last text, with colours and no other sequences', () => {
  assert.equal(terminalText('10%\r50%\r\nrest'), '50%\nrest');
  assert.equal(terminalText('\x1b[2K\x1b[31mred\x1b[0m\x1b]0;title\x07'), '\x1b[31mred\x1b[0m');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogQuery, LogWindow } from '../src/api/experiment';
import { Refusal } from '../src/api/request';
import { LogFollower, lastLines, terminalText } from '../src/home/log_follower';
import type { LogTail } from '../widgets/lib/frames';
import { Clock, turn } from './fakes';

const CHOICE = { trial: 1, attempt: 0, stream: 'stdout', rank: 0 };

function windowOf(text: string, begin: number, changes: Partial<LogWindow> = {}): LogWindow {
  const end = begin + text.length;
  return { text, begin_bytes: begin, end_bytes: end, size_bytes: end, attempt: 1, final: true, ...changes };
}

function following(answers: (LogWindow | Error)[]): {
  asked: LogQuery[];
  told: LogTail[];
  follower: LogFollower;
} {
  const asked: LogQuery[] = [];
  const told: LogTail[] = [];
  const ask = (query: LogQuery): Promise<LogWindow> => {
    asked.push(query);
    const answer = answers[asked.length - 1] ?? windowOf('', query.beginBytes ?? 0);
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
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

test('a request that fails leaves what was read, and is made again', async () => {
  const clock = new Clock();
  clock.install();
  const { asked, told, follower } = following([
    windowOf('one\n', 0, { final: false }),
    new Error('The server does not answer.'),
    windowOf('', 4),
  ]);
  follower.follow(CHOICE);
  for (let i = 0; i < 3; i++) {
    await turn();
    clock.passAll();
  }
  assert.equal(asked.length, 3);
  assert.deepEqual(
    told.map(({ text }) => text),
    ['one\n'],
  );
});

test('a log whose first request fails tells why, and then its text', async () => {
  const clock = new Clock();
  clock.install();
  const { told, follower } = following([new Error('The server does not answer.'), windowOf('one\n', 0)]);
  follower.follow(CHOICE);
  await turn();
  clock.passAll();
  await turn();
  assert.deepEqual(
    told.map(({ text }) => text),
    ['The server does not answer.', 'one\n'],
  );
});

test('a log that is not there any more is not asked for again', async () => {
  const clock = new Clock();
  clock.install();
  const { asked, follower } = following([new Refusal('There is no trial 1.', 404)]);
  follower.follow(CHOICE);
  await turn();
  assert.equal(clock.waiting, 0);
  assert.equal(asked.length, 1);
});

import { asked, newest } from './fake_server';
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { PageConfig } from '@jupyterlab/coreutils';
import { Refusal, isGone, request } from '../src/api/request';

beforeEach(() => {
  asked.length = 0;
  PageConfig.setOption('baseUrl', 'http://lab.test/user/ada/');
});

async function failure(path: string): Promise<unknown> {
  return request(path).then(
    () => assert.fail('it was answered'),
    (error: unknown) => error,
  );
}

test('a refusal is told in the words of the server', async () => {
  const failed = failure('experiments/e');
  await (await newest()).answer({ detail: 'There is no experiment e.', action: 'Load the list again.' }, 404);
  const error = await failed;
  assert.ok(error instanceof Refusal && isGone(error));
  assert.equal(error.message, 'There is no experiment e. Load the list again.');
});

for (const [page, status] of [
  ['<html>Bad gateway</html>', 502],
  ['{"message": "Service unavailable"}', 503],
  ['<html>Log in</html>', 200],
] as const)
  test(`what a proxy answers with status ${status} is told in a sentence`, async () => {
    const failed = failure('experiments');
    await (await newest()).answerText(page, status);
    const error = await failed;
    assert.ok(error instanceof Refusal);
    assert.equal(error.status, status);
    assert.match(error.message, new RegExp(`^The server answered ${status}.* without a reason\\. Look`));
  });

test('a server that is not reached is told in a sentence', async () => {
  const failed = failure('experiments');
  await (await newest()).fail();
  const error = await failed;
  assert.ok(error instanceof Error && !isGone(error));
  assert.match(error.message, /^The server does not answer \(Failed to fetch\)\. Look/);
});

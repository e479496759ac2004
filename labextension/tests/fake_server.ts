/** Import this first: what `@jupyterlab/services` finds as `fetch` when it is loaded, answered by the test. */

import { turn } from './fakes';

export interface Asked {
  method: string;
  url: URL;
  body: string;
  answer(content: object, status?: number): Promise<void>;
  /** Answer with a text that is not JSON, as a proxy does. */
  answerText(text: string, status: number): Promise<void>;
  /** Let the connection fail. */
  fail(): Promise<void>;
}

/** The requests that wait for an answer, oldest first. */
export const asked: Asked[] = [];

globalThis.fetch = async (input, init) => {
  const request = new Request(input, init);
  const body = await request.text();
  return new Promise((resolve, reject) => {
    const answerText = async (text: string, status: number): Promise<void> => {
      resolve(new Response(text, { status }));
      await taken();
    };
    const answer = (content: object, status = 200): Promise<void> =>
      answerText(JSON.stringify(content), status);
    const fail = async (): Promise<void> => {
      reject(new TypeError('Failed to fetch'));
      await taken();
    };
    asked.push({ method: request.method, url: new URL(request.url), body, answer, answerText, fail });
  });
};

async function taken(): Promise<void> {
  for (let i = 0; i < 5; i++) await turn();
}

const given = new WeakSet<Asked>();

/** The newest request, once there is one that was not given before. */
export async function newest(): Promise<Asked> {
  const deadlineMs = Date.now() + 60_000;
  for (;;) {
    const found = asked.at(-1);
    if (found && !given.has(found)) {
      given.add(found);
      return found;
    }
    if (Date.now() > deadlineMs) throw new Error('nothing has been asked');
    await turn();
  }
}

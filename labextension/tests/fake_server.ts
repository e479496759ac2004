/** Import this first: what `@jupyterlab/services` finds as `fetch` when it is loaded, answered by the test. */

import { turn } from './fakes';

export interface Asked {
  method: string;
  url: URL;
  body: string;
  answer(content: object, status?: number): Promise<void>;
}

/** The requests that wait for an answer, oldest first. */
export const asked: Asked[] = [];

globalThis.fetch = async (input, init) => {
  const request = new Request(input, init);
  const body = await request.text();
  return new Promise((resolve) => {
    const answer = async (content: object, status = 200): Promise<void> => {
      resolve(new Response(JSON.stringify(content), { status }));
      for (let i = 0; i < 5; i++) await turn();
    };
    asked.push({ method: request.method, url: new URL(request.url), body, answer });
  });
};

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

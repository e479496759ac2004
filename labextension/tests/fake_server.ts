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

/** The newest request; fails where none has been made. */
export async function newest(): Promise<Asked> {
  for (let i = 0; i < 5; i++) await turn();
  const found = asked.at(-1);
  if (!found) throw new Error('nothing has been asked');
  return found;
}

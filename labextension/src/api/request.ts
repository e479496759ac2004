/** How the server's extension is asked: below the base URL, with the page's own credentials. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

const API = 'jupyter-autotrain/api';

/** A request that was refused; the message is what was found, and what to do next. */
export class Refusal extends Error {
  constructor(
    message: string,
    /** The HTTP status. */
    readonly status: number,
  ) {
    super(message);
  }
}

export interface Request {
  method?: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  query?: Record<string, string | number>;
  body?: object;
}

/**
 * Ask one operation of the API and give its JSON.
 * @param path Below the API, each part that is not fixed encoded by `encodeURIComponent`.
 * @throws Refusal where the server answers with a problem; TypeError where it does not answer.
 */
export async function request(path: string, asked: Request = {}): Promise<unknown> {
  const answer = await send(path, asked);
  return answer.json();
}

/**
 * Ask an operation that answers with bytes, such as a picture.
 * @throws Refusal, TypeError As `request`.
 */
export async function requestBytes(path: string): Promise<{ type: string; bytes: DataView }> {
  const answer = await send(path, {});
  const type = answer.headers.get('Content-Type') ?? '';
  return { type, bytes: new DataView(await answer.arrayBuffer()) };
}

async function send(path: string, { method, query, body }: Request): Promise<Response> {
  const settings = ServerConnection.makeSettings();
  const parameters = Object.entries(query ?? {}).map(([name, value]) => [name, String(value)]);
  const url = `${URLExt.join(settings.baseUrl, API)}/${path}`;
  const init: RequestInit = { method: method ?? 'GET' };
  if (body) init.body = JSON.stringify(body);
  const search = URLExt.objectToQueryString(Object.fromEntries(parameters) as Record<string, string>);
  const answer = await ServerConnection.makeRequest(url + (parameters.length ? search : ''), init, settings);
  if (answer.ok) return answer;
  const problem = (await answer.json()) as { detail?: string; action?: string };
  throw new Refusal([problem.detail, problem.action].filter(Boolean).join(' '), answer.status);
}

/** Where the socket of changes is; `since` is the id up to which all is known, undefined: up to now. */
export function changesUrl(since: number | undefined): string {
  const settings = ServerConnection.makeSettings();
  const token = settings.appendToken && settings.token ? { token: settings.token } : {};
  const from = since === undefined ? {} : { since: String(since) };
  return URLExt.join(settings.wsUrl, API, 'changes') + URLExt.objectToQueryString({ ...from, ...token });
}

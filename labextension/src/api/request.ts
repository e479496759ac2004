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

/** Whether what was asked for is not there, so that to ask again is of no use. */
export function isGone(error: unknown): boolean {
  return error instanceof Refusal && error.status === 404;
}

export interface Request {
  method?: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  query?: Record<string, string | number>;
  body?: object;
}

/**
 * Ask one operation of the API and give its JSON.
 * @param path Below the API, each part that is not fixed encoded by `encodeURIComponent`.
 * @throws Refusal where the server, or a proxy before it, answers with anything else; Error where nothing answers.
 */
export async function request(path: string, asked: Request = {}): Promise<unknown> {
  const answer = await send(path, asked);
  try {
    return await answer.json();
  } catch {
    throw new Refusal(noReason(answer), answer.status); // a page that a proxy gives, such as one to log in
  }
}

/**
 * Ask an operation that answers with bytes, such as a picture.
 * @throws Refusal, Error As `request`.
 */
export async function requestBytes(path: string): Promise<{ type: string; bytes: DataView }> {
  const answer = await send(path, {});
  const type = answer.headers.get('Content-Type') ?? '';
  return { type, bytes: new DataView(await answer.arrayBuffer()) };
}

async function send(path: string, { method, query, body }: Request): Promise<Response> {
  const settings = ServerConnection.makeSettings();
  const url = urlOf(settings, path, query ?? {});
  const init: RequestInit = { method: method ?? 'GET' };
  if (body) init.body = JSON.stringify(body);
  const answer = await reached(url, init, settings);
  if (answer.ok) return answer;
  throw new Refusal((await problemOf(answer)) || noReason(answer), answer.status);
}

async function reached(
  url: string,
  init: RequestInit,
  settings: ServerConnection.ISettings,
): Promise<Response> {
  try {
    return await ServerConnection.makeRequest(url, init, settings);
  } catch (error) {
    const found = error instanceof Error ? error.message : String(error);
    throw new Error(`The server does not answer (${found}). Look whether it runs, then try again.`);
  }
}

/** What is wrong in the server's words; "" where a proxy answered in its place. */
async function problemOf(answer: Response): Promise<string> {
  try {
    const { detail, action } = (await answer.json()) as { detail?: string; action?: string };
    return [detail, action].filter(Boolean).join(' ');
  } catch {
    return '';
  }
}

function noReason({ status, statusText }: Response): string {
  const found = `The server answered ${status} ${statusText}`.trimEnd();
  return `${found} without a reason. Look whether it runs, then load the page again.`;
}

/** Where a browser gets what an operation answers, without a script: with the token, where one is used. */
export function pageUrl(path: string, query: Record<string, string | number>): string {
  const settings = ServerConnection.makeSettings();
  return urlOf(settings, path, { ...query, ...tokenOf(settings) });
}

function urlOf(
  { baseUrl }: ServerConnection.ISettings,
  path: string,
  query: Record<string, string | number>,
): string {
  const texts = Object.entries(query).map(([name, value]) => [name, String(value)] as const);
  const search = texts.length > 0 ? URLExt.objectToQueryString(Object.fromEntries(texts)) : '';
  return `${URLExt.join(baseUrl, API)}/${path}${search}`;
}

/** Where the socket of changes is; `since` is the id up to which all is known, undefined: up to now. */
export function changesUrl(since: number | undefined): string {
  const settings = ServerConnection.makeSettings();
  const from = since === undefined ? {} : { since: String(since) };
  return (
    URLExt.join(settings.wsUrl, API, 'changes') +
    URLExt.objectToQueryString({ ...from, ...tokenOf(settings) })
  );
}

function tokenOf({ appendToken, token }: ServerConnection.ISettings): { token?: string } {
  return appendToken && token ? { token } : {};
}

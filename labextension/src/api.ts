/** What the server's extension answers, and how it is asked: below the base URL, with the page's own credentials. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

export type Group = 'running' | 'queued' | 'done';
export type Sort = 'created' | 'ended' | 'name' | 'best';

export interface Experiment {
  id: string;
  name: string;
  state: string;
  group: Group;
  final: boolean;
  reason: string;
  notebook: string;
  tags: string[];
  note: string;
  objective: { metric: string; direction: string; label: string } | null;
  best: { trial: number; value: number } | null;
  trials: number;
  counts: Record<string, number>;
  sparkline: number[];
  took_s: number;
  eta_s: number | null;
}

export interface ExperimentList {
  total: number;
  groups: Record<Group, number>;
  last_change_id: number;
  experiments: Experiment[];
  manager: { alive: boolean };
}

export interface ListQuery {
  text: string;
  sort: Sort;
  limit: number;
}

const API = 'jupyter-autotrain/api';

/** A request that was refused; the message is what was found, and what to do next. */
export class Refusal extends Error {}

export async function listExperiments(query: ListQuery): Promise<ExperimentList> {
  const order = query.sort === 'name' ? 'ascending' : 'descending';
  const parameters = URLExt.objectToQueryString({ ...query, limit: String(query.limit), order });
  return (await request(`experiments${parameters}`)) as ExperimentList;
}

async function request(path: string): Promise<unknown> {
  const settings = ServerConnection.makeSettings();
  const url = `${URLExt.join(settings.baseUrl, API)}/${path}`;
  const answer = await ServerConnection.makeRequest(url, {}, settings);
  const content: unknown = await answer.json();
  if (!answer.ok) {
    const problem = content as { detail?: string; action?: string };
    throw new Refusal([problem.detail, problem.action].filter(Boolean).join(' '));
  }
  return content;
}

/** Where the socket of changes is; changes up to `since` are known. */
export function changesUrl(since: number): string {
  const settings = ServerConnection.makeSettings();
  const token = settings.appendToken && settings.token ? { token: settings.token } : {};
  return (
    URLExt.join(settings.wsUrl, API, 'changes') +
    URLExt.objectToQueryString({ since: String(since), ...token })
  );
}

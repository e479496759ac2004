/** Operations on experiments: the list. */

import { request } from './request';

export type Group = 'running' | 'queued' | 'done';
export type Order = 'ascending' | 'descending';
export type Sort =
  | 'created'
  | 'ended'
  | 'took'
  | 'name'
  | 'state'
  | 'trials'
  | 'best'
  | 'metric'
  | 'place'
  | 'notebook'
  | 'tags';

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
  /** All of them, the one that ranks trials first. */
  objectives: { metric: string; direction: string; label: string }[];
  best: { trial: number; value: number } | null;
  trials: number;
  counts: Record<string, number>;
  /** Null is a gap. */
  sparkline: (number | null)[];
  /** The names of the places that it may use. */
  backend: string;
  /** batch; standard: a session. */
  mode: string;
  /** Whether its trials can be cloned: they train alone. */
  clones: boolean;
  /** Of a trial, on each of its nodes. */
  gpus: number;
  /** Of one trial, where the profile of its only place names one. */
  price: { hour: number; currency: string } | null;
  created_s: number;
  ended_s: number | null;
  took_s: number;
  eta_s: number | null;
}

export interface ExperimentList {
  total: number;
  groups: Record<Group, number>;
  /** All tags of the home. */
  tags: string[];
  /** All places that its experiments may use. */
  places: string[];
  /** All metrics that its experiments are ranked by. */
  metrics: string[];
  /** How many of those that fit there are of each notebook that this page has. */
  notebooks: Record<string, number>;
  last_change_id: number;
  /** The server's clock, seconds since the epoch. */
  now_s: number;
  experiments: Experiment[];
  manager: { alive: boolean };
}

export interface ListQuery {
  text: string;
  tag: string;
  sort: Sort;
  /** descending: the newest, the last or the best first. */
  order: Order;
  limit: number;
  offset?: number;
  group?: Group;
  state?: string;
  place?: string;
  metric?: string;
  /** When it was submitted, seconds since the epoch; "" is any time, as "" is anything of the others. */
  since_s?: number | '';
  until_s?: number | '';
  /** state: what runs first, then what waits, then what is done; each in the order above. */
  grouping?: 'none' | 'state';
}

/** A page of the experiments that fit. */
export async function listExperiments(query: ListQuery): Promise<ExperimentList> {
  const asked = Object.entries(query).filter(([, value]) => value !== '');
  return (await request('experiments', { query: Object.fromEntries(asked) })) as ExperimentList;
}

/** Set the tags or the note; what is not given stays. */
export async function annotate(id: string, body: { tags?: string[]; note?: string }): Promise<void> {
  await request(`experiments/${encodeURIComponent(id)}`, { method: 'PATCH', body });
}

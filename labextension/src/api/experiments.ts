/** Operations on experiments: the list. */

import { request } from './request';

export type Group = 'running' | 'queued' | 'done';
export type Order = 'ascending' | 'descending';
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
  /** Null is a gap. */
  sparkline: (number | null)[];
  ended_s: number | null;
  took_s: number;
  eta_s: number | null;
}

export interface ExperimentList {
  total: number;
  groups: Record<Group, number>;
  /** All tags of the home. */
  tags: string[];
  /** How many of those that fit there are of each notebook that this page has. */
  notebooks: Record<string, number>;
  last_change_id: number;
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
  group?: Group;
  /** state: what runs first, then what waits, then what is done; each in the order above. */
  grouping?: 'none' | 'state';
}

/** A page of the experiments that fit. */
export async function listExperiments(query: ListQuery): Promise<ExperimentList> {
  return (await request('experiments', { query: { ...query } })) as ExperimentList;
}

/** Set the tags or the note; what is not given stays. */
export async function annotate(id: string, body: { tags?: string[]; note?: string }): Promise<void> {
  await request(`experiments/${encodeURIComponent(id)}`, { method: 'PATCH', body });
}

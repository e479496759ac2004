/** Operations on one experiment: its details, trials, curves, logs, pictures and reasons. */

import type { Json, LogChoice, LogMatch, PictureName } from '../../widgets/lib/frames';
import type { View } from '../../widgets/plan/view';
import type { Experiment } from './experiments';
import { pageUrl, request, requestBytes } from './request';

export interface Resources {
  cpus: number | null;
  memory_bytes: number | null;
  gpus: number;
  gpu_memory_bytes: number | null;
  /** `ring` or `mesh`; absent in what older versions stored. */
  adjacent?: string | null;
  nodes: number;
  workers_per_node: number;
}

export interface ExperimentDetails extends Experiment {
  backend: string;
  begun_s: number;
  ended_s: number | null;
  metrics: string[];
  warnings: string[];
  concurrency: number;
  tuner: string;
  search: Record<string, Json>;
  resources: Resources;
  /** What starts the workers of a trial and tells them of each other. */
  launcher: string;
  /** Whether a trial goes on without a worker or node that is lost. */
  elastic: boolean;
  backends: string[];
  header: string;
  /** Whether it was submitted with a plan of how its model is split. */
  has_plan: boolean;
  /** As the Jupyter server names it; "" where it does not show it. */
  notebook_path: string;
  manager: { alive: boolean };
}

export interface TrialRow {
  number: number;
  state: string;
  value: number | string | null;
  /** Of the further objectives, in their order. */
  more_values: (number | null)[];
  params: Record<string, Json>;
  attempt: number;
  started_s: number | null;
  ended_s: number | null;
  reason: string;
  gpus: string[];
  backend: string;
  nodes: string[];
  started_from: string;
  parent: number | null;
  /** Why it waits; "" where it does not. */
  blocked_by: string;
}

export interface CurveRows {
  trial: number;
  points: number;
  steps: number[];
  /** Null is a gap: NaN was reported. */
  values: (number | null)[];
  times_s: number[];
}

export interface SeriesQuery {
  metric: string;
  trials: readonly number[];
  maxPoints: number;
}

export interface LogQuery extends LogChoice {
  /** Undefined: the end of it. */
  beginBytes: number | undefined;
}

export interface LogWindow {
  text: string;
  begin_bytes: number;
  end_bytes: number;
  size_bytes: number;
  attempt: number;
  /** Nothing comes after what is there now. */
  final: boolean;
}

interface TrialsPage {
  total: number;
  last_state_change: number;
  trials: TrialRow[];
}

const FIRST_PAGE = 200; // soon there, to be seen while the others are read
const TRIALS_PER_PAGE = 5000;

function pathOf(id: string, rest = ''): string {
  return `experiments/${encodeURIComponent(id)}${rest}`;
}

export async function showExperiment(id: string): Promise<ExperimentDetails> {
  return (await request(pathOf(id))) as ExperimentDetails;
}

/** Trials in order of their numbers, and what to ask with for those that have changed since. */
export interface TrialRows {
  trials: TrialRow[];
  lastStateChange: number;
  isLast: boolean;
}

/** Page after page. @param changedAfter Only the trials that can have changed since that state change; 0: all. */
export async function* listTrials(id: string, changedAfter = 0): AsyncGenerator<TrialRows> {
  let offset = 0;
  let lastStateChange: number | undefined;
  for (let isLast = false; !isLast; ) {
    const query = { offset, limit: offset ? TRIALS_PER_PAGE : FIRST_PAGE, changed_after: changedAfter };
    const page = (await request(pathOf(id, '/trials'), { query })) as TrialsPage;
    offset += page.trials.length;
    lastStateChange ??= page.last_state_change; // what changes between two pages comes again
    isLast = page.trials.length === 0 || offset >= page.total;
    yield { trials: page.trials, lastStateChange, isLast };
  }
}

export async function showSeries(
  id: string,
  { metric, trials, maxPoints }: SeriesQuery,
): Promise<CurveRows[]> {
  const query = { metric, trials: trials.join(), max_points: maxPoints };
  return ((await request(pathOf(id, '/series'), { query })) as { curves: CurveRows[] }).curves;
}

export async function showLog(id: string, { beginBytes, ...choice }: LogQuery): Promise<LogWindow> {
  const query = { ...streamOf(choice), begin_bytes: beginBytes ?? -1 };
  return (await request(pathOf(id, `/trials/${choice.trial}/log`), { query })) as LogWindow;
}

/** One match of a text in all of a log. @param match Which, from 1 on. */
export async function searchLog(
  id: string,
  choice: LogChoice,
  text: string,
  match: number,
): Promise<Omit<LogMatch, keyof LogChoice | 'query'>> {
  const query = { ...streamOf(choice), text, match };
  const path = pathOf(id, `/trials/${choice.trial}/log/matches`);
  return (await request(path, { query })) as Omit<LogMatch, keyof LogChoice | 'query'>;
}

/** Where a browser gets all of a log as a file. */
export function logFileUrl(id: string, choice: LogChoice): string {
  return pageUrl(pathOf(id, `/trials/${choice.trial}/log/file`), streamOf(choice));
}

function streamOf({ attempt, stream, rank }: LogChoice): { attempt: number; stream: string; rank: number } {
  return { attempt, stream, rank };
}

export async function listPictures(id: string): Promise<PictureName[]> {
  const answer = (await request(pathOf(id, '/pictures'))) as {
    pictures: { trial: number; attempt: number; name: string; step: number | null }[];
  };
  return answer.pictures.map(({ trial, attempt, name, step }) => [trial, attempt, name, step]);
}

export async function showPicture(
  id: string,
  trial: number,
  attempt: number,
  name: string,
): Promise<{ type: string; bytes: DataView }> {
  const file = encodeURIComponent(name);
  return requestBytes(pathOf(id, `/trials/${trial}/attempts/${attempt}/pictures/${file}`));
}

/** A plan without the graph of its model; `jupyter_autotrain/parallel/plan/view.py` describes the keys. */
export type StoredPlan = Omit<View, 'groups' | 'nodes' | 'edges' | 'tensors' | 'timeline'>;

/** How the model was planned to be split, of an experiment that has a plan. */
export async function showPlan(id: string): Promise<StoredPlan> {
  return (await request(pathOf(id, '/plan'))) as StoredPlan;
}

/** What one attempt of a trial has used of its node: columns of one length; null where nothing is known of GPUs. */
export interface AttemptUsage {
  attempt: number;
  /** Since the attempt began. */
  seconds: number[];
  /** 100 is one CPU. */
  cpu_percent: number[];
  memory_bytes: number[];
  gpu_percent: (number | null)[] | null;
  gpu_memory_bytes: (number | null)[] | null;
}

export async function showUsage(id: string, trial: number): Promise<AttemptUsage[]> {
  return ((await request(pathOf(id, `/trials/${trial}/usage`))) as { attempts: AttemptUsage[] }).attempts;
}

/** Why trials wait or have failed, in sentences. */
export async function showWhy(id: string): Promise<string[]> {
  return ((await request(pathOf(id, '/why'))) as { sentences: string[] }).sentences;
}

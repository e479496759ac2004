/** What the kernel sends; drawn in `jupyter_autotrain/views/feed.py`. Times are seconds since the epoch. */

export interface Experiment {
  id: string;
  name: string;
  state: string;
  final: boolean;
  reason: string;
  backend: string;
  /** How many workers a trial has; each has a log. */
  ranks: number;
  /** Whether its trials can be cloned: they train alone. */
  clones: boolean;
  objective: string | null;
  /** What its value is called: `val_acc (last)`, `max(val_acc)`. */
  objective_label: string | null;
  /** All of them, the one that ranks trials first. */
  objectives: Objective[];
  /** The number of the best trial. */
  best: number | null;
  trials: number;
  begun_s: number;
  ended_s: number | null;
  now_s: number;
  eta_s: number | null;
  /** The options of parameters that are one of several numbers, by their paths; where they are known. */
  options?: ReadonlyMap<string, number[]>;
}

export interface Objective {
  metric: string;
  direction: string;
  label: string;
}

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

export interface Trial {
  number: number;
  state: string;
  params: Record<string, Json>;
  value: number | null;
  /** Of the further objectives, in their order. */
  more_values: (number | null)[];
  attempt: number;
  started_s: number | null;
  ended_s: number | null;
  reason: string;
  /** The trial whose checkpoint it began with, such as `digits#3`; "" where it began anew. */
  started_from: string;
  /** The number of that trial, where it is one of these. */
  parent: number | null;
  /** Backend and node; "" where all trials are at one. */
  runs_on: string;
}

/** metric, trial, attempt, first row, rows */
export type Block = [string, number, number, number, number];

export interface Frame {
  seq: number;
  experiment: Experiment;
  trials: Trial[];
  series: Block[];
  /** All that trials warn of; only in frames where it has changed. */
  warnings?: string[];
  /** The newest pictures; only in frames where they have changed. */
  pictures?: PictureName[];
}

/** trial, attempt, name, step */
export type PictureName = [number, number, string, number | null];

export interface PictureMessage {
  kind: 'picture';
  trial: number;
  attempt: number;
  name: string;
  type: string;
}

export interface Snapshot extends Frame {
  steps: DataView;
  values: DataView;
  times: DataView;
}

/** Rows of all blocks of a frame, one block after another. */
export interface Columns {
  steps: Float64Array;
  values: Float64Array;
  /** Seconds since the epoch. */
  times: Float64Array;
}

/** Which log of an experiment. */
export interface LogChoice {
  trial: number;
  /** 0 is the present one. */
  attempt: number;
  stream: string;
  rank: number;
}

/** The end of a log. */
export interface LogTail extends LogChoice {
  text: string;
  /** What stands before the text, in words; "" for nothing. */
  left_out: string;
  bytes: number;
}

/** One match of a text in all of a log, with the lines around it. */
export interface LogMatch extends LogChoice {
  query: string;
  /** How many matches there are. */
  total: number;
  /** The number of the one that is shown, from 1 on. */
  match: number;
  text: string;
  left_out: string;
  /** How many matches in the text come before it. */
  place: number;
}

/** All of a log, or why it is not given. */
export interface LogFile extends LogChoice {
  name: string;
  /** Why there are no bytes; "" where there are. */
  text: string;
}

export const ACTIVE = new Set(['WAITING', 'PREPARING', 'RUNNING']);

export function columns(steps?: DataView, values?: DataView, times?: DataView): Columns {
  return { steps: floats(steps), values: floats(values), times: floats(times) };
}

/** A copy is taken because the bytes of a message need not be aligned to eight. */
function floats(bytes: DataView | undefined): Float64Array {
  if (!bytes) return new Float64Array(0);
  return new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}

/** What a notebook keeps of an experiment; see `jupyter_autotrain/views/json_objects.py`. Pure. */

export const RUN_MIME_TYPE = 'application/vnd.autotrain.run+json';

/** Whoever wrote the notebook's file wrote it. */
export interface StoredRun {
  version: number;
  id: string;
  name: string;
  state: string;
  final: boolean;
  reason: string;
  objective: { metric: string; direction: string } | null;
  best: { trial: number; value: number } | null;
  trials: number;
  counts: Record<string, number>;
  created_s: number;
  begun_s: number | null;
  ended_s: number | null;
  curves: StoredCurve[];
}

export interface StoredCurve {
  metric: string;
  trial: number;
  steps: number[];
  values: (number | null)[];
}

const ID = /^[A-Za-z0-9_-]{1,64}$/;

/** The stored run in a bundle of MIME types; undefined where there is none that this version reads. */
export function storedRun(data: unknown): StoredRun | undefined {
  if (!isObject(data)) return undefined;
  const { version, id, name, state, trials, counts, curves } = data;
  const isRead = version === 1 && typeof id === 'string' && ID.test(id);
  const isWhole = typeof name === 'string' && typeof state === 'string' && typeof trials === 'number';
  if (!isRead || !isWhole || !isObject(counts) || !Array.isArray(curves)) return undefined;
  return { ...(data as unknown as StoredRun), curves: curves.filter(isCurve) };
}

function isCurve(curve: unknown): curve is StoredCurve {
  if (!isObject(curve)) return false;
  const { metric, trial, steps, values } = curve;
  if (typeof metric !== 'string' || !Number.isSafeInteger(trial)) return false;
  return Array.isArray(steps) && Array.isArray(values) && steps.length === values.length;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The runs in the outputs of a cell, in their order. */
export function runsIn(outputs: Iterable<Record<string, unknown>>): StoredRun[] {
  return [...outputs].flatMap((data) => storedRun(data[RUN_MIME_TYPE]) ?? []);
}

/** Operations that change experiments: the server keeps each durably before it answers. */

import type { Json } from '../../widgets/lib/frames';
import { request } from './request';

export type Action = 'stop' | 'retry' | 'resume' | 'rerun' | 'delete';

/** What an action was answered with: a request to the manager, or a new experiment. */
export interface Kept {
  request?: number;
  experiment?: string;
  name?: string;
}

interface Answered {
  done: boolean;
  result: { error?: string } | null;
}

const PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 3000;

/** Ask for an action; `trials` are numbers of trials, undefined: all that it fits. */
export async function act(id: string, action: Action, trials?: number[]): Promise<Kept> {
  const path = `experiments/${encodeURIComponent(id)}`;
  if (action === 'delete') return (await request(path, { method: 'DELETE' })) as Kept;
  const body = trials ? { action, trials } : { action };
  return (await request(`${path}/actions`, { method: 'POST', body })) as Kept;
}

/** Add a trial that goes on from the checkpoint of this one; throws what the manager says is wrong. */
export async function continueFrom(id: string, trial: number, params: Record<string, Json>): Promise<void> {
  const body = { action: 'continue', trials: [trial], params };
  const kept = (await request(`experiments/${encodeURIComponent(id)}/actions`, {
    method: 'POST',
    body,
  })) as Kept;
  const wrong = kept.request === undefined ? '' : await answerOf(kept.request);
  if (wrong) throw new Error(wrong);
}

/**
 * Wait until the manager has answered a request.
 * @returns What it says is wrong; "" where it did what was asked, or has not answered in `limitMs`.
 */
export async function answerOf(requestId: number, limitMs = 60_000): Promise<string> {
  const deadlineMs = performance.now() + limitMs;
  let pauseMs = PAUSE_MS;
  while (performance.now() < deadlineMs) {
    const answer = (await request(`requests/${requestId}`)) as Answered;
    if (answer.done) return answer.result?.error ?? '';
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
  }
  return '';
}

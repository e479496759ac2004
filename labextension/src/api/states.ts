/** The states of trials that have ended. */
export const ENDED: ReadonlySet<string> = new Set([
  'SUCCEEDED',
  'FAILED',
  'CANCELLED',
  'EARLY_STOPPED',
  'PREEMPTED',
  'LOST',
]);

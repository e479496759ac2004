/** How faults read. */

import type { Fault } from '../api/header';

const MOST_SHOWN = 6;

/** Three clauses on one line. */
export function faultText({ found, expected, action }: Fault): string {
  return [found, expected, action].filter(Boolean).join('; ');
}

/** Six lines at most, the last one for how many more there are. */
export function shownFaults(faults: Fault[]): Fault[] {
  return faults.length <= MOST_SHOWN ? faults : faults.slice(0, MOST_SHOWN - 1);
}

/** How the values that a parameter may take read. */

import { plain } from '../../widgets/lib/format';
import type { Json } from '../../widgets/lib/frames';

/** A distribution in one line, without what is not set: `uniform(low=0.1, high=1)` */
export function searchText(space: Json): string {
  if (space === null || typeof space !== 'object' || Array.isArray(space)) return JSON.stringify(space);
  const { kind, ...rest } = space;
  const set = Object.entries(rest).filter(([, value]) => value !== null && value !== false);
  return `${plain(kind)}(${set.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(', ')})`;
}

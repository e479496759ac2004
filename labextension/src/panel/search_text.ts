/** How the values that a parameter may take read. */

import type { Json } from '../../widgets/lib/frames';
import { plain } from '../../widgets/lib/format';

/** A distribution in one line: `type: name=value ...`. */
export function searchText(space: Json): string {
  if (space === null || typeof space !== 'object' || Array.isArray(space)) return plain(space);
  const facts = Object.entries(space).map(([name, value]) => `${name}=${plain(value)}`);
  return facts.join('  ');
}

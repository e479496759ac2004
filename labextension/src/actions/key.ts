/** Commands that are run by a key say why they do nothing; menus and buttons do not offer them then. */

import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

/** Whether a command was run by a key; Lumino says so in the arguments. */
export function isKey(args: ReadonlyPartialJSONObject): boolean {
  const event = args._luminoEvent as { type?: string } | undefined;
  return event?.type === 'keybinding';
}

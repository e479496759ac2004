/** Which row has the focus and which are chosen, as in a list of mails: going to a row, or opening it, chooses none. */

export interface Picked {
  focused: string;
  /** Where a range begins. */
  anchor: string;
  /** Those that are ticked. */
  chosen: readonly string[];
}

export const NOTHING: Picked = { focused: '', anchor: '', chosen: [] };

export function isSection(id: string): boolean {
  return id.startsWith('section:');
}

/** What a command is about: those that are chosen, else the row that has the focus. */
export function selected({ focused, chosen }: Picked): readonly string[] {
  if (chosen.length > 0 || !focused || isSection(focused)) return chosen;
  return [focused];
}

/** The focus on this row, and none chosen. */
export function only(id: string): Picked {
  return { focused: id, anchor: id, chosen: [] };
}

/** This row too, or no longer. */
export function toggled(picked: Picked, id: string): Picked {
  if (isSection(id)) return { ...picked, focused: id };
  const others = picked.chosen.filter((each) => each !== id);
  const chosen = others.length < picked.chosen.length ? others : [...others, id];
  return { focused: id, anchor: id, chosen };
}

/** All rows from the anchor to this one. */
export function extended(picked: Picked, id: string, rows: readonly string[]): Picked {
  const ends = [Math.max(rows.indexOf(picked.anchor), 0), rows.indexOf(id)].sort((a, b) => a - b) as [
    number,
    number,
  ];
  const chosen = rows.slice(ends[0], ends[1] + 1).filter((each) => !isSection(each));
  return { focused: id, anchor: picked.anchor, chosen };
}

/** The row so many rows away; the first or last where there is none. */
export function neighbour(picked: Picked, by: number, rows: readonly string[]): string {
  const from = rows.indexOf(picked.focused);
  const to = Math.min(Math.max(from + by, 0), rows.length - 1);
  return rows[to] ?? '';
}

/** What is left of it among these experiments. */
export function kept(picked: Picked, ids: ReadonlySet<string>): Picked {
  const chosen = picked.chosen.filter((id) => ids.has(id));
  if (chosen.length === picked.chosen.length) return picked;
  return { ...picked, chosen };
}

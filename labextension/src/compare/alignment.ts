/** What several experiments have, side by side: which values differ, and the texts that show it. */

import { plain } from '../../widgets/lib/format';
import type { Json } from '../../widgets/lib/frames';

export interface AlignedRow {
  name: string;
  /** One per experiment; "" where it does not have the name. */
  texts: string[];
  differs: boolean;
}

/**
 * One row per name, those that differ first, both in the order in which they come.
 *
 * @param columns What each experiment has, by name; undefined where that is not known yet, which differs from nothing.
 */
export function alignedRows(columns: readonly (ReadonlyMap<string, Json> | undefined)[]): AlignedRow[] {
  const names = new Set(columns.flatMap((column) => [...(column?.keys() ?? [])]));
  const rows = [...names].map((name): AlignedRow => {
    const values = columns.map((column) => column?.get(name));
    const known = columns.flatMap((column) => (column ? [JSON.stringify(column.get(name))] : []));
    return { name, texts: textsOf(values), differs: new Set(known).size > 1 };
  });
  return [...rows.filter(({ differs }) => differs), ...rows.filter(({ differs }) => !differs)];
}

/** Short texts, unless values that differ would read the same. */
function textsOf(values: readonly (Json | undefined)[]): string[] {
  const short = values.map((value) => plain(value));
  const exact = values.map((value) => (value === undefined ? '' : JSON.stringify(value)));
  return new Set(short).size < new Set(exact).size ? exact : short;
}

/** The ids to compare, each once. */
export function uniqueIds(ids: unknown): string[] {
  if (!Array.isArray(ids)) return [];
  return [...new Set(ids.filter((id): id is string => typeof id === 'string' && id !== ''))];
}

/** Operations on the header of a cell: the server reads it as a kernel would, and no kernel is asked. */

import { request } from './request';

/** What is wrong in one line, in three clauses. */
export interface Fault {
  /** From 1, which is the magic line: there also faults of settings files are told. */
  line: number;
  file: string;
  found: string;
  expected: string;
  action: string;
}

export interface Completions {
  /** Where the replaced text begins, in characters (code points). */
  start: number;
  /** `origin`: where a backend is defined; `title`: what it means in a few words; "" of anything else. */
  matches: { text: string; origin: string; title: string; description: string }[];
  /** False where the cursor may also be in code. */
  sure: boolean;
}

/** Of a longer cell the top is sent. */
export const MOST_CHARACTERS = 4_000;

/**
 * What running the cell would refuse in its header.
 * @param text The whole cell.
 * @param notebook The notebook's path, as the server names it.
 */
export async function headerFaults(text: string, notebook: string): Promise<Fault[]> {
  const answer = await request('header/faults', { method: 'POST', body: { text: topOf(text), notebook } });
  return (answer as { faults: Fault[] }).faults;
}

/** What may be typed next; `cursor` in characters (code points). */
export async function headerCompletions(
  text: string,
  cursor: number,
  notebook: string,
): Promise<Completions> {
  const body = { text: topOf(text), cursor: Math.min(cursor, MOST_CHARACTERS), notebook };
  return (await request('header/completions', { method: 'POST', body })) as Completions;
}

function topOf(text: string): string {
  return text.slice(0, MOST_CHARACTERS);
}

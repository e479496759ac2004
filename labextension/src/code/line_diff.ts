/** Two texts line by line: what both have, what only one of them has. */

import { diffLines } from 'diff';

export interface Line {
  kind: 'same' | 'removed' | 'added';
  text: string;
  /** Its number in each text, from 1; undefined where that text does not have it. */
  left: number | undefined;
  right: number | undefined;
}

/** Lines that are shown, or how many equal ones are not. */
export type Part = { lines: Line[] } | { skipped: Line[] };

const PATIENCE_MS = 1000;
const CONTEXT = 3;
const LEAST_SKIPPED = 4; // a fold of less than this is no shorter

/** All lines of both texts in order. Where texts are too different to be told in a second, one replaces the other. */
export function lineDiff(left: string, right: string): Line[] {
  const pieces = diffLines(ended(left), ended(right), { timeout: PATIENCE_MS }) as Piece[] | undefined;
  const known = pieces ?? [
    { value: ended(left), removed: true, added: false },
    { value: ended(right), removed: false, added: true },
  ];
  let [atLeft, atRight] = [1, 1];
  return known.flatMap((piece) =>
    split(piece.value).map((text): Line => {
      const kind = piece.added ? 'added' : piece.removed ? 'removed' : 'same';
      return {
        kind,
        text,
        left: kind === 'added' ? undefined : atLeft++,
        right: kind === 'removed' ? undefined : atRight++,
      };
    }),
  );
}

/** The lines with long stretches of equal ones folded, three of them left on either side. */
export function folded(lines: Line[]): Part[] {
  const near = lines.map((_, i) => isNearChange(lines, i));
  const parts: Part[] = [];
  let from = 0;
  while (from < lines.length) {
    let to = from;
    while (to < lines.length && near[to] === near[from]) to += 1;
    const run = lines.slice(from, to);
    if (near[from] || run.length < LEAST_SKIPPED) show(parts, run);
    else parts.push({ skipped: run });
    from = to;
  }
  return parts;
}

/** How many lines only one of the texts has. */
export function changes(lines: Line[]): { removed: number; added: number } {
  const many = (kind: Line['kind']): number => lines.filter((line) => line.kind === kind).length;
  return { removed: many('removed'), added: many('added') };
}

/** One text, as lines that are all there. */
export function plainLines(text: string): Line[] {
  return split(ended(text)).map((each, i) => ({ kind: 'same', text: each, left: i + 1, right: undefined }));
}

interface Piece {
  value: string;
  added: boolean;
  removed: boolean;
}

function show(parts: Part[], run: Line[]): void {
  const last = parts.at(-1);
  if (last && 'lines' in last) last.lines.push(...run);
  else parts.push({ lines: [...run] });
}

function isNearChange(lines: Line[], at: number): boolean {
  const around = lines.slice(Math.max(at - CONTEXT, 0), at + CONTEXT + 1);
  return around.some(({ kind }) => kind !== 'same');
}

/** A last line without its end is the same line. */
function ended(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

function split(text: string): string[] {
  const lines = text.split('\n');
  lines.pop(); // what stands after the last end of a line is nothing
  return lines;
}

/** Which cell of a notebook an experiment came from. Pure. */

import { isExperiment } from '../header/header_lines';

export interface CellFacts {
  source: string;
  /** The experiments that its outputs show. */
  runs: string[];
}

const OWN_LINE = /^this cell:(\d+)$/;
const LEAST_SHARE = 0.5; // of its lines: a cell that was changed more is another one

/**
 * The index of the cell, or -1: the one whose output is the experiment's, else the one whose code was captured, else
 * one that only shows the experiment.
 */
export function findCell(cells: CellFacts[], id: string, script: string, sourceMap: string[]): number {
  const ran = cells.findIndex(({ source, runs }) => isExperiment(source) && runs.includes(id));
  if (ran >= 0) return ran;
  const lines = ownLines(script, sourceMap);
  const shares = cells.map(({ source }) => share(source.split('\n'), lines));
  const best = Math.max(0, ...shares);
  if (best >= LEAST_SHARE) return shares.indexOf(best);
  return cells.findIndex(({ runs }) => runs.includes(id));
}

/** The lines of the script that are the cell's own, by their number in it (from 1); blank ones tell nothing. */
function ownLines(script: string, sourceMap: string[]): Map<number, string> {
  const found = new Map<number, string>();
  script.split('\n').forEach((text, i) => {
    const line = OWN_LINE.exec(sourceMap[i] ?? '')?.[1];
    if (line !== undefined && text.trim() !== '') found.set(Number(line), text);
  });
  return found;
}

/** How many of the lines stand in the cell where they stood, from 0 to 1. */
function share(rows: string[], lines: Map<number, string>): number {
  let same = 0;
  for (const [line, text] of lines) same += rows[line - 1] === text ? 1 : 0;
  return lines.size > 0 ? same / lines.size : 0;
}

/** The experiments of a list under headings: by what they do, or by the notebook that they came from. */

import type { Experiment, Group } from '../api/experiments';

export type Grouping = 'state' | 'notebook';

export interface Section {
  /** What it is known by in the tree; no experiment has such an id. */
  key: string;
  /** A group of states, or the path of a notebook. */
  of: string;
  experiments: Experiment[];
}

const STATES: Group[] = ['running', 'queued', 'done'];

/** The order of the experiments stays; a section without any is left out. O(n). */
export function sections(experiments: readonly Experiment[], grouping: Grouping): Section[] {
  const found = new Map<string, Experiment[]>();
  if (grouping === 'state') for (const state of STATES) found.set(state, []);
  for (const experiment of experiments) {
    const of = grouping === 'state' ? experiment.group : experiment.notebook;
    const members = found.get(of);
    if (members) members.push(experiment);
    else found.set(of, [experiment]);
  }
  return [...found]
    .filter(([, members]) => members.length > 0)
    .map(([of, members]) => ({ key: `section:${of}`, of, experiments: members }));
}

/** The ids of the rows that are seen, from the top: each section, and its experiments unless it is folded. */
export function visibleRows(shown: readonly Section[], folded: ReadonlySet<string>): string[] {
  return shown.flatMap((section) => {
    if (folded.has(section.key)) return [section.key];
    return [section.key, ...section.experiments.map((experiment) => experiment.id)];
  });
}

/** The name of a file without its folders. */
export function fileName(path: string): string {
  return path.split(/[\\/]/).at(-1) ?? path;
}

/** How the work of one trial is split: its workers, their nodes and accelerators. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { h } from '../../widgets/lib/dom';
import type { ExperimentDetails, TrialRow } from '../api/experiment';

export interface NodeRanks {
  /** "" where it is not known yet. */
  node: string;
  first: number;
  last: number;
  accelerators: string[];
}

/** The ranks of each node, in order; names and accelerators are those of a trial that was placed. */
export function ranksOf(details: ExperimentDetails, trial: TrialRow | undefined): NodeRanks[] {
  const { nodes, workers_per_node: workers, gpus } = details.resources;
  return Array.from({ length: nodes }, (_, i) => ({
    node: trial?.nodes[i] ?? '',
    first: i * workers,
    last: (i + 1) * workers - 1,
    accelerators: trial?.gpus.slice(i * gpus, (i + 1) * gpus) ?? [],
  }));
}

export function strategyFacts(details: ExperimentDetails, trans: TranslationBundle): [string, string][] {
  const { resources, launcher, elastic } = details;
  const { nodes, workers_per_node: workers, gpus } = resources;
  const ranks = nodes * workers;
  const split = trans.__('%1 workers: %2 on each of %3 nodes', ranks, workers, nodes);
  const facts: [string, string][] = [
    [trans.__('Workers'), ranks === 1 ? trans.__('one worker (rank 0)') : split],
    [trans.__('GPUs in all'), String(nodes * gpus)],
  ];
  if (ranks === 1) return facts;
  const goesOn = elastic ? trans.__('the trial goes on without it') : trans.__('the trial fails');
  facts.push([trans.__('Launcher'), launcher], [trans.__('If a worker is lost'), goesOn]);
  return facts;
}

/** Which ranks are on which node; nothing for a single worker. */
export function rankTable(
  details: ExperimentDetails,
  trial: TrialRow | undefined,
  trans: TranslationBundle,
): HTMLElement | string {
  const rows = ranksOf(details, trial);
  if (rows.at(-1)?.last === 0) return '';
  const label = trial ? trans.__('Ranks of trial %1', trial.number) : trans.__('Ranks of a trial');
  const heads = [trans.__('Node'), trans.__('Ranks'), trans.__('GPUs')];
  const head = h('tr', {}, ...heads.map((text) => h('th', { scope: 'col' }, text)));
  const body = rows.map(({ node, first, last, accelerators }, i) => {
    const ranks = first === last ? String(first) : `${first}–${last}`;
    const name = h('th', { scope: 'row' }, node || String(i));
    return h('tr', {}, name, h('td', {}, ranks), h('td', {}, accelerators.join(', ') || '–'));
  });
  return h(
    'table',
    { class: 'jp-Autotrain-table' },
    h('caption', {}, label),
    h('thead', {}, head),
    h('tbody', {}, ...body),
  );
}

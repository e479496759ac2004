/** The numbers of a chart as a table: for reading aloud, copying and exact values. */

import { nearest } from './curves';
import { h } from './dom';
import { count, number } from './format';
import type { Session } from './session';

const MOST_TRIALS = 8;
const MOST_ROWS = 60;

/** Steps down, trials across: the chosen and the best trial first, then the newest; long curves are sampled. */
export function fillDataTable(session: Session, metric: string): HTMLElement {
  const curves = session.series.metrics.get(metric) ?? new Map<number, never>();
  const first = [session.choices.trial, session.best()?.number].filter((trial) => trial !== undefined);
  const order = new Set([...first, ...[...curves.keys()].sort((a, b) => b - a)]);
  const trials = [...order]
    .filter((trial) => curves.has(trial) && !session.choices.hidden.has(trial))
    .slice(0, MOST_TRIALS);
  const columns = trials.map((trial) => session.curve(metric, trial)?.steps ?? new Float64Array(0));
  const longest = columns.reduce(
    (best, column) => (column.length > best.length ? column : best),
    new Float64Array(0),
  );
  const steps = sample(longest);
  const rows = steps.map((step) =>
    h(
      'tr',
      {},
      h('th', { scope: 'row' }, String(step)),
      ...trials.map((trial) => h('td', {}, at(session, metric, trial, step))),
    ),
  );
  const heads = trials.map((trial) =>
    h('th', { scope: 'col' }, `${session.names.nameOf(trial)}${trial === session.best()?.number ? ' ★' : ''}`),
  );
  const shown = steps.length < longest.length ? `${steps.length} of ${longest.length}` : `${steps.length}`;
  const caption = `${metric}: ${trials.length} of ${count(curves.size, session.names.noun)}, ${shown} steps`;
  const table = h(
    'table',
    { class: 'at-table' },
    h('caption', {}, caption),
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'step'), ...heads)),
    h('tbody', {}, ...rows),
  );
  return h(
    'div',
    { class: 'at-scroll at-data-table', tabindex: 0, role: 'region', 'aria-label': `Values of ${metric}` },
    table,
  );
}

function sample(longest: Float64Array): number[] {
  const rows = Math.min(longest.length, MOST_ROWS);
  const place = (i: number): number => (rows < 2 ? 0 : Math.round((i * (longest.length - 1)) / (rows - 1)));
  return Array.from({ length: rows }, (_, i) => longest[place(i)] ?? 0);
}

function at(session: Session, metric: string, trial: number, step: number): string {
  const series = session.curve(metric, trial);
  const row = series ? nearest(series.steps, step) : -1;
  return series?.steps[row] === step ? number(series.values[row]) : '';
}

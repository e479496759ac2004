/** The numbers of a chart as a table: for reading aloud, copying and exact values. */

import { nearest } from './curves';
import { h } from './dom';
import { number } from './format';
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
  const { trans, names } = session;
  const curvesText = trans.__('%1 of %2', trials.length, names.counted(curves.size));
  const stepsText =
    steps.length < longest.length
      ? trans.__('%1 of %2 steps', steps.length, longest.length)
      : trans._n('%1 step', '%1 steps', steps.length);
  const caption = `${metric}: ${curvesText}, ${stepsText}`;
  const label = trans.__('Values of %1', metric);
  const table = h(
    'table',
    { class: 'at-table' },
    h('caption', {}, caption),
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, trans.__('step')), ...heads)),
    h('tbody', {}, ...rows),
  );
  return h(
    'div',
    { class: 'at-scroll at-data-table', tabindex: 0, role: 'region', 'aria-label': label },
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

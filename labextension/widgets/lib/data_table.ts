/** The numbers of a chart as a table: for reading aloud, copying and exact values. */

import { metricAlong } from './choices';
import { axisOf, curveOf, nearest } from './curves';
import { h } from './dom';
import { number } from './format';
import type { Session } from './session';

const MOST_TRIALS = 8;
const MOST_ROWS = 60;

interface Column {
  x: Float64Array;
  values: Float64Array;
}

const NONE: Column = { x: new Float64Array(0), values: new Float64Array(0) };

/**
 * Steps down, or what lies along the x axis, and trials across: the chosen and the best trial first, then the newest;
 * long curves are sampled.
 */
export function fillDataTable(session: Session, metric: string): HTMLElement {
  const curves = session.series.metrics.get(metric) ?? new Map<number, never>();
  const first = [session.choices.trial, session.best()?.number].filter((trial) => trial !== undefined);
  const order = new Set([...first, ...[...curves.keys()].sort((a, b) => b - a)]);
  const trials = [...order]
    .filter((trial) => curves.has(trial) && !session.choices.hidden.has(trial))
    .slice(0, MOST_TRIALS);
  const along = metricAlong(axisOf(session, metric));
  const columns = trials.map((trial) => columnOf(session, metric, trial, along !== undefined));
  const longest = columns.reduce((best, column) => (column.x.length > best.x.length ? column : best), NONE);
  const steps = sample(longest.x);
  const rows = steps.map((step) =>
    h(
      'tr',
      {},
      h('th', { scope: 'row' }, along === undefined ? String(step) : number(step)),
      ...columns.map((column) => h('td', {}, at(column, step))),
    ),
  );
  const heads = trials.map((trial) =>
    h('th', { scope: 'col' }, `${session.names.nameOf(trial)}${trial === session.best()?.number ? ' ★' : ''}`),
  );
  const { trans, names } = session;
  const stepName = names.hasSteps ? trans.__('step') : trans.__('seconds');
  const curvesText = trans.__('%1 of %2', trials.length, names.counted(curves.size));
  const stepsText = namesRows(session, steps.length, longest.x.length);
  const caption = `${metric}: ${curvesText}, ${stepsText}`;
  const label = trans.__('Values of %1', metric);
  const table = h(
    'table',
    { class: 'at-table' },
    h('caption', {}, caption),
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, along ?? stepName), ...heads)),
    h('tbody', {}, ...rows),
  );
  return h(
    'div',
    { class: 'at-scroll at-data-table', tabindex: 0, role: 'region', 'aria-label': label },
    table,
  );
}

function namesRows({ trans, names }: Session, shown: number, all: number): string {
  if (!names.hasSteps) return trans._n('%1 sample', '%1 samples', shown);
  return shown < all ? trans.__('%1 of %2 steps', shown, all) : trans._n('%1 step', '%1 steps', shown);
}

function columnOf(session: Session, metric: string, trial: number, isAlong: boolean): Column {
  if (isAlong) {
    const { x, raw } = curveOf(session, metric, trial) ?? { x: NONE.x, raw: NONE.values };
    return { x, values: raw };
  }
  const series = session.curve(metric, trial);
  return series ? { x: series.steps, values: series.values } : NONE;
}

function sample(longest: Float64Array): number[] {
  const rows = Math.min(longest.length, MOST_ROWS);
  const place = (i: number): number => (rows < 2 ? 0 : Math.round((i * (longest.length - 1)) / (rows - 1)));
  return Array.from({ length: rows }, (_, i) => longest[place(i)] ?? 0);
}

function at({ x, values }: Column, step: number): string {
  const row = nearest(x, step);
  return x[row] === step ? number(values[row]) : '';
}

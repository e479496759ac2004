/** The axes of a chart: what they span and how they are labelled. */

import uPlot from 'uplot';
import type { Axis, Limits } from './choices';
import { metricAlong } from './choices';
import { duration, number } from './format';
import type { Translator } from './translator';

const WHOLE_STEPS = [1, 2, 5]
  .flatMap((unit) => Array.from({ length: 12 }, (_, power) => unit * 10 ** power))
  .sort((a, b) => a - b);
const FARTHEST = Number.MAX_VALUE / 8;
const [MINUTE, HOUR, DAY] = [60, 3600, 86_400];
const SPANS = [0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30]
  .concat([1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE))
  .concat([1, 2, 3, 6, 12].map((hours) => hours * HOUR))
  .concat([1, 2, 5, 10, 20, 50, 100].map((days) => days * DAY));

/** All of the values, with room around a single one. */
export function xRange(curves: [number, number], zoom: [number, number] | undefined): [number, number] {
  if (zoom) return zoom;
  const [low, high] = curves;
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

export function yRange(
  low: number | null,
  high: number | null,
  log: boolean,
  limits: Limits,
): [number, number] {
  const [first, last] = automatic(low, high, log);
  const bottom = limits[0] !== undefined && (!log || limits[0] > 0) ? limits[0] : first;
  const top = limits[1] !== undefined && (!log || limits[1] > 0) ? limits[1] : last;
  return bottom < top ? [bottom, top] : [first, last];
}

function automatic(lowest: number | null, highest: number | null, log: boolean): [number, number] {
  if (lowest === null || highest === null) return log ? [0.1, 1] : [0, 1];
  const [low, high] = [within(lowest), within(highest)];
  const [bottom, top] = log
    ? uPlot.rangeLog(low, high, 10, true)
    : low === high
      ? around(low)
      : uPlot.rangeNum(low, high, 0.1, true);
  return [bottom ?? 0, top ?? 1];
}

/** Bounds whose distance, with room around it, is still a number. */
function within(value: number): number {
  return Math.min(Math.max(value, -FARTHEST), FARTHEST);
}

/** A value alone stands in the middle, between labels of its own size. */
function around(value: number): [number, number] {
  const room = Math.abs(value) * 0.1 || 1;
  return [value - room, value + room];
}

export function xAxis(axis: Axis, trans: Translator): Partial<uPlot.Axis> {
  if (axis === 'clock') return {};
  if (axis === 'trial') return { incrs: SPANS, values: (_, splits) => splits.map(spanLabel) };
  const metric = metricAlong(axis);
  // The first label names the unit.
  const first = (text: string): string =>
    metric === undefined ? trans.__('step %1', text) : `${metric} ${text}`;
  const label = (value: number, i: number): string => (i === 0 ? first(number(value)) : number(value));
  return {
    ...(metric === undefined ? { incrs: WHOLE_STEPS } : {}),
    values: (_, splits) => splits.map(label),
  };
}

export function yAxis(log: boolean): Partial<uPlot.Axis> {
  const values = (_: uPlot, splits: number[]): string[] =>
    splits.map((value) => ((value as number | null) === null ? '' : number(value)));
  return log ? { values, filter: powersOfTen } : { values };
}

function spanLabel(value: number): string {
  return value < 60 ? `${number(value)} s` : duration(value).replace(/ 00 (s|min)$/, '');
}

function powersOfTen(_: uPlot, splits: number[]): (number | null)[] {
  return splits.map((value) => (Number.isInteger(Math.log10(value)) ? value : null));
}

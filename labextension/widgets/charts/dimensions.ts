/** The axes of parallel coordinates: what trials have, brought onto positions from 0 (bottom) to 1 (top). */

import type { ScaleContinuousNumeric } from 'd3-scale';
import { scaleLinear, scaleLog, scalePoint } from 'd3-scale';
import { number, plain } from '../lib/format';
import type { Json } from '../lib/frames';

/** What a trial has on an axis: a number, a label, or undefined where it has nothing that the axis can show. */
export type Value = number | string | undefined;

/** One value per trial, in the order of the trials. */
export interface Column {
  key: string;
  title: string;
  values: readonly (Json | undefined)[];
  /** The numbers that the values are taken from, where they are one of several. */
  options?: readonly number[] | undefined;
}

export interface Tick {
  /** From 0 (bottom) to 1 (top). */
  position: number;
  text: string;
}

export interface Dimension {
  key: string;
  title: string;
  kind: 'numbers' | 'labels';
  /** From the bottom to the top; of numbers, empty. */
  labels: readonly string[];
  low: number;
  high: number;
  /** From numbers to positions; what lies beyond the ends is at them. */
  scale: ScaleContinuousNumeric<number, number>;
  isLog: boolean;
  /** Whether a logarithm of all its values is there. */
  allowsLog: boolean;
  values: readonly Value[];
  /** By trial; NaN where there is no value. */
  positions: Float32Array;
  hasMissing: boolean;
  ticks: readonly Tick[];
}

const MOST_LABELS = 12;
const ABOUT = 5; // so many ticks of numbers
const ROOM = 0.05; // of an axis, between two numbers beside it
const LOG_FROM = 100; // greatest over least: more than two decades
const NOT_FINITE = new Set(['nan', 'inf', '-inf', 'infinity', '-infinity']);

/**
 * Nested parameters side by side: `{model: {_name: 'big', width: 15}}` has `model` and `model.width`.
 *
 * @returns Values by path.
 */
export function flatten(params: Record<string, Json>, prefix = ''): Map<string, Json> {
  const found = new Map<string, Json>();
  for (const [name, value] of Object.entries(params)) {
    if (value === null || typeof value !== 'object' || Array.isArray(value)) {
      found.set(`${prefix}${name}`, value);
      continue;
    }
    const { _name, ...rest } = value;
    if (_name !== undefined) found.set(`${prefix}${name}`, _name);
    for (const [path, item] of flatten(rest, `${prefix}${name}.`)) found.set(path, item);
  }
  return found;
}

/**
 * The axis of a column. Numbers alone make a scale, anything else makes labels; what is no finite number is missing.
 *
 * @param others What the label of the less frequent values is called.
 * @param isLog Whether the scale is logarithmic; undefined decides by the values.
 */
export function dimensionOf(column: Column, others: string, isLog?: boolean): Dimension {
  const present = column.values.filter((value) => value !== undefined && value !== null);
  const areNumbers = present.every((value) => typeof value === 'number' || isNotFinite(value));
  return areNumbers && present.some((value) => typeof value === 'number')
    ? numbers(column, isLog)
    : labels(column, others);
}

/** Where a value lies. */
export function positionOf({ labels, scale }: Pick<Dimension, 'labels' | 'scale'>, value: Value): number {
  if (value === undefined) return NaN;
  return typeof value === 'number' ? scale(value) : (labelScale(labels)(value) ?? NaN);
}

/** The number that lies at a position from 0 to 1. */
export function numberAt({ scale }: Dimension, position: number): number {
  return scale.invert(position);
}

/** How a value of the axis reads. */
export function textOf(value: Value): string {
  return typeof value === 'number' ? number(value) : (value ?? '');
}

function isNotFinite(value: Json | undefined): boolean {
  return typeof value === 'string' && NOT_FINITE.has(value.toLowerCase());
}

function numbers(column: Column, wanted: boolean | undefined): Dimension {
  const values = column.values.map((value) =>
    typeof value === 'number' && Number.isFinite(value) ? value : undefined,
  );
  const options = column.options ?? [];
  let [low, high] = [Infinity, -Infinity];
  for (const value of [...options, ...values]) {
    if (value === undefined) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) [low, high] = [0, 1];
  const allowsLog = low > 0 && high > low;
  const isLog = allowsLog && (wanted ?? readsBetterAsLog(values, low, high));
  const scale = (isLog ? scaleLog() : scaleLinear()).domain([low, high]).clamp(true);
  const tick = (value: number): Tick => ({ position: scale(value), text: number(value) });
  const ticks = options.length > 0 ? apart(options.map(tick)) : usual(scale).map(tick);
  const kind = { kind: 'numbers' as const, labels: [], low, high, scale, isLog, allowsLog };
  return placed({ key: column.key, title: column.title, ...kind, values, ticks });
}

/** Round numbers within the axis; of a logarithmic one those that d3 labels. */
function usual(scale: Dimension['scale']): number[] {
  const format = scale.tickFormat(ABOUT);
  return scale.ticks(ABOUT).filter((value) => Number.isFinite(value) && format(value) !== '');
}

/** Those that have room, from the bottom to the top. */
function apart(ticks: Tick[]): Tick[] {
  const kept: Tick[] = [];
  for (const tick of ticks.sort((a, b) => a.position - b.position))
    if (kept.every(({ position }) => tick.position - position >= ROOM)) kept.push(tick);
  return kept;
}

/** Whether values span decades, and their median is nearer to the middle of a logarithmic axis than of a linear one. */
function readsBetterAsLog(values: readonly (number | undefined)[], low: number, high: number): boolean {
  if (high / low < LOG_FROM) return false;
  const sorted = Float64Array.from(values.filter((value) => value !== undefined)).sort();
  const median = sorted[(sorted.length - 1) >> 1] ?? low;
  const linear = (median - low) / (high - low);
  const logarithmic = Math.log(median / low) / Math.log(high / low);
  return Math.abs(logarithmic - 0.5) <= Math.abs(linear - 0.5);
}

function labels(column: Column, others: string): Dimension {
  const all = column.values.map((value) => (value === undefined ? undefined : plain(value)));
  const names = labelsOf(all, others);
  const known = new Set(names);
  const values = all.map((label) => (label === undefined || known.has(label) ? label : others));
  const place = labelScale(names);
  const ticks = names.map((text) => ({ position: place(text) ?? NaN, text }));
  const kind = { kind: 'labels' as const, labels: names, low: 0, high: 1, isLog: false, allowsLog: false };
  return placed({ key: column.key, title: column.title, ...kind, scale: scaleLinear(), values, ticks });
}

/** The most frequent labels in their natural order; the rest are one. */
function labelsOf(all: readonly (string | undefined)[], others: string): string[] {
  const counts = new Map<string, number>();
  for (const label of all) if (label !== undefined) counts.set(label, (counts.get(label) ?? 0) + 1);
  const isOver = counts.size > MOST_LABELS;
  const frequent = [...counts.keys()].sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0));
  const kept = isOver ? frequent.slice(0, MOST_LABELS - 1) : frequent;
  const ordered = kept.sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
  return isOver && !ordered.includes(others) ? [others, ...ordered] : ordered;
}

/** Positions of labels, the same distance apart. */
function labelScale(names: readonly string[]): (label: string) => number | undefined {
  return scalePoint(names, [0, 1]).padding(0.5);
}

function placed(dimension: Omit<Dimension, 'positions' | 'hasMissing'>): Dimension {
  const { values, scale } = dimension;
  const ofLabel = labelScale(dimension.labels);
  const positions = Float32Array.from(values, (value) =>
    typeof value === 'number' ? scale(value) : (ofLabel(value ?? '') ?? NaN),
  );
  return { ...dimension, positions, hasMissing: values.includes(undefined) };
}

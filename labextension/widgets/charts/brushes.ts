/** What is brushed on axes, and which trials lie in it. */

import type { Dimension, Value } from './dimensions';
import { numberAt, positionOf } from './dimensions';

/** Stands for trials without a value. */
export const MISSING = '';

/** A range of numbers (infinite where it reaches an end of the axis), or labels, or both: whoever is in one of them passes. */
export interface Brush {
  range: readonly [number, number] | undefined;
  labels: ReadonlySet<string>;
}

/** By the key of the axis; an axis without one lets all pass. */
export type Brushes = ReadonlyMap<string, Brush>;

export type End = 'low' | 'high';

const LEAST_SPAN = 0.005;

/** One byte per trial: 1 where it lies in the brushes of all axes. O(trials x brushes). */
export function passing(dimensions: readonly Dimension[], brushes: Brushes, trials: number): Uint8Array {
  const mask = new Uint8Array(trials).fill(1);
  for (const dimension of dimensions) {
    const brush = brushes.get(dimension.key);
    if (!brush) continue;
    for (let i = 0; i < trials; i++) if (!lies(brush, dimension.values[i])) mask[i] = 0;
  }
  return mask;
}

export function lies({ range, labels }: Brush, value: Value): boolean {
  if (typeof value === 'number') return range !== undefined && value >= range[0] && value <= range[1];
  return labels.has(value ?? MISSING);
}

/** Whether a drag between two positions is long enough to mean anything. */
export function isDrag(dimension: Dimension, from: number, to: number): boolean {
  return dimension.kind === 'labels' || Math.abs(to - from) >= LEAST_SPAN;
}

/** What a drag between two positions brushes; undefined where that is all of the axis. */
export function brushBetween(dimension: Dimension, from: number, to: number): Brush | undefined {
  const [low, high] = [Math.min(from, to), Math.max(from, to)];
  if (dimension.kind === 'labels') {
    const half = 0.5 / Math.max(dimension.labels.length, 1);
    const isIn = (label: string): boolean => {
      const position = positionOf(dimension, label);
      return position + half > low && position - half < high;
    };
    return { range: undefined, labels: new Set(dimension.labels.filter(isIn)) };
  }
  return whole({ range: rangeOf(dimension, low, high), labels: new Set() });
}

/** The positions of the ends of what is brushed, within the axis. */
export function ends(dimension: Dimension, brush: Brush | undefined): [number, number] {
  if (!brush?.range) return [0, 1];
  return [dimension.scale(brush.range[0]), dimension.scale(brush.range[1])];
}

/** Move one end of the range by a distance along the axis; it stops at the other end. */
export function moved(
  dimension: Dimension,
  brush: Brush | undefined,
  end: End,
  by: number,
): Brush | undefined {
  const [low, high] = ends(dimension, brush);
  const next: [number, number] =
    end === 'low' ? [clamp(low + by, 0, high), high] : [low, clamp(high + by, low, 1)];
  return whole({ range: rangeOf(dimension, ...next), labels: brush?.labels ?? new Set() });
}

/** Put a label into the brush, or out of it. */
export function toggled(brush: Brush | undefined, label: string): Brush | undefined {
  const labels = new Set(brush?.labels);
  if (!labels.delete(label)) labels.add(label);
  const range = brush?.range;
  return range || labels.size > 0 ? { range, labels } : undefined;
}

/** The brushes with one of them set, or taken away. */
export function withBrush(brushes: Brushes, key: string, brush: Brush | undefined): Brushes {
  const next = new Map(brushes);
  if (brush) next.set(key, brush);
  else next.delete(key);
  return next;
}

function rangeOf(dimension: Dimension, low: number, high: number): [number, number] {
  // Values that come later lie beyond the ends of now.
  return [low <= 0 ? -Infinity : numberAt(dimension, low), high >= 1 ? Infinity : numberAt(dimension, high)];
}

/** A range of all numbers brushes nothing. */
function whole(brush: Brush): Brush | undefined {
  const isAll = brush.range?.[0] === -Infinity && brush.range[1] === Infinity;
  return isAll ? undefined : brush;
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

/** Which slice of a tensor a device holds. */

import type { Mesh, Tensor } from './view';

export interface Slice {
  /** Number of the slice among the tensor's distinct slices. */
  index: number;
  /** Per dim the first row held and the one after the last. */
  ranges: [number, number][];
}

/** Coordinates on the mesh axes of the device with this place within its stage; the last axis moves fastest. */
export function coordinates(place: number, shape: number[]): number[] {
  const found: number[] = [];
  let rest = place;
  for (const size of [...shape].reverse()) {
    found.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return found;
}

export function sliceOf(tensor: Tensor, place: number, mesh: Mesh): Slice {
  const at = coordinates(place, mesh.shape);
  const ranges = tensor.shape.map((size): [number, number] => [0, size]);
  let index = 0;
  for (const { axis, dim, parts } of tensor.splits) {
    const range = ranges[dim];
    if (!range) continue;
    const [low, high] = range;
    const part = at[axis] ?? 0;
    const step = (high - low) / parts;
    ranges[dim] = [Math.round(low + step * part), Math.round(low + step * (part + 1))];
    index = index * parts + part;
  }
  return { index, ranges };
}

/** Number of distinct slices. */
export function slices(tensor: Tensor): number {
  return tensor.splits.reduce((product, split) => product * split.parts, 1);
}

/** `[0:512, :]`: what is held, dim by dim, as it would be written; empty of a single number. */
export function rangeText(tensor: Tensor, slice: Slice): string {
  const split = new Set(tensor.splits.map((one) => one.dim));
  const dims = slice.ranges.map(([low, high], dim) => (split.has(dim) ? `${low}:${high}` : ':'));
  return dims.length > 0 ? `[${dims.join(', ')}]` : '';
}

/** Neighbours differ in hue, and every slice has a place on the circle of its own. */
export function hueOf(index: number, total: number): number {
  return Math.round((210 + (360 * index) / Math.max(total, 1)) % 360);
}

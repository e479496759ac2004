/** How splits, moves, limits and proofs read. */

import type { Translator } from '../lib/translator';
import { memoryText, percent } from './format';
import type { GraphNode, LayoutChange, Mesh, View } from './view';

/** The mesh as `data 2 × tensor 8`, with the stages in front; neighbours of one name are tiers of one axis. */
export function meshText(mesh: Mesh, trans: Translator): string {
  const tiers: { axis: string; size: number }[] = [];
  mesh.axes.forEach((axis, i) => {
    const size = mesh.shape[i] ?? 1;
    const last = tiers.at(-1);
    if (last?.axis === axis) last.size *= size;
    else tiers.push({ axis, size });
  });
  const axes = tiers.map(({ axis, size }) => `${axis} ${size}`);
  const stages = mesh.stages > 1 ? [trans._n('%1 stage', '%1 stages', mesh.stages)] : [];
  return [...stages, ...axes].join(' × ') || trans.__('one device');
}

export function isProven(view: View): boolean {
  return view.gap !== null && view.gap <= 5e-4;
}

/** What is proved of a plan; a gap that is no number proves nothing. */
export function gapText(view: View, trans: Translator): string {
  if (isProven(view)) return trans.__('Proven best, gap 0');
  if (view.gap === null) {
    const noBound = trans.__('the search found no close bound');
    return trans.__('Not proved: %1', unsupportedText(view, trans) || noBound);
  }
  const gap = percent(view.gap);
  return view.complete
    ? trans.__('At most %1 from best', gap)
    : trans.__('Stopped early: at most %1 from best', gap);
}

/** Ops without a rule that hold more of the work than a proof may leave out; empty where a proof stands. */
function unsupportedText(view: View, trans: Translator): string {
  const shares = Object.values(view.unsupported_work);
  const total = shares.reduce((sum, share) => sum + share, 0);
  const kinds = Object.keys(view.unsupported_work).slice(0, 5).join(', ');
  return total > 0.01 ? trans.__('%1 of the work is in ops without a rule (%2)', percent(total), kinds) : '';
}

/** What a node is split along: `batch ÷16`, `feature ÷8, batch ÷2`, or `replica`. */
export function splitText(node: GraphNode, mesh: Mesh, trans: Translator): string {
  const ways = new Map<string, number>();
  node.split.forEach((role, axis) => {
    if (role) ways.set(role, (ways.get(role) ?? 1) * (mesh.shape[axis] ?? 1));
  });
  const words = roleWords(trans);
  return (
    [...ways].map(([role, parts]) => `${words[role] ?? role} ÷${parts}`).join(', ') || trans.__('replica')
  );
}

function roleWords(trans: Translator): Record<string, string> {
  return {
    batch: trans.__('batch'),
    sequence: trans.__('sequence'),
    head: trans.__('head'),
    feature: trans.__('feature'),
    expert: trans.__('expert'),
    spatial: trans.__('spatial'),
    other: trans.__('other'),
  };
}

/** Some collectives in one line, tiers of one axis together: `reduce-scatter over data, 7.3 MiB sent per rank`. */
export function movesText(moves: LayoutChange[], mesh: Mesh, trans: Translator): string {
  const axes = new Map<string, Set<string>>();
  for (const { what, axis, times } of moves) {
    const found = axes.get(times > 1 ? `${times} × ${what}` : what) ?? new Set<string>();
    axes.set(times > 1 ? `${times} × ${what}` : what, found.add(mesh.axes[axis] ?? trans.__('the mesh')));
  }
  const words = [...axes].map(([what, over]) => trans.__('%1 over %2', what, [...over].join(' × ')));
  const sent = moves.reduce((sum, move) => sum + move.sent_bytes * move.times, 0);
  return trans.__('%1, %2 sent per rank', words.join(', '), memoryText(sent));
}

/** What a rank can have of a device: `74.2 GiB usable of 80 GiB`, or the requested limit. */
export function limitText(view: View, trans: Translator): string {
  const { memory_bytes, usable_bytes } = view.cluster;
  const [limit, memory] = [memoryText(view.limit_bytes), memoryText(memory_bytes)];
  if (view.limit_bytes >= memory_bytes) return limit;
  return view.limit_bytes === usable_bytes
    ? trans.__('%1 usable of %2', limit, memory)
    : trans.__('%1 allowed of %2', limit, memory);
}

/** Where an op's weights are: split in use, and what the ranks that hold the same part share out among them. */
export function weightsText(node: GraphNode, view: View, trans: Translator): string {
  const devices = view.mesh.shape.reduce((product, size) => product * size, 1);
  const weights = view.tensors.filter((one) => one.kind === 'parameter' && node.tensors.includes(one.id));
  const parts = weights.map((one) => one.splits.reduce((product, split) => product * split.parts, 1));
  const [least, most] = [Math.min(...parts), Math.max(...parts)];
  const shared = shardedText(node.zero, trans);
  if (parts.length === 0 || most === 1) return shared || trans.__('whole on every rank');
  const split =
    least === most
      ? trans.__('split into %1 parts', most)
      : trans.__('split into %1 to %2 parts', least, most);
  if (least === devices) return trans.__('%1, one on each rank', split);
  const copies = devices / most;
  return shared
    ? trans.__('%1, copies on %2 ranks, among these %3', split, copies, shared)
    : trans.__('%1, copies on %2 ranks', split, copies);
}

/** What of an op's weights is sharded; empty at ZeRO level 0. */
function shardedText(level: number, trans: Translator): string {
  const texts = [
    '',
    trans.__('optimizer states sharded (ZeRO 1)'),
    trans.__('optimizer states and gradients sharded (ZeRO 2)'),
    trans.__('optimizer states, gradients and parameters sharded (ZeRO 3)'),
  ];
  return texts[level] ?? '';
}

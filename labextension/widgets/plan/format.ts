/** How seconds, bytes, splits and gaps read. */

import type { GraphNode, Mesh, LayoutChange, View } from './view';

export function seconds(value: number): string {
  const [size, unit] = value >= 1 ? [value, 's'] : value >= 1e-3 ? [value * 1e3, 'ms'] : [value * 1e6, 'µs'];
  if (value < 1e-9) return '0 ms';
  return `${size >= 100 ? size.toFixed(0) : String(Number(size.toPrecision(3)))} ${unit}`;
}

export function bytes(value: number): string {
  return scaled(value, ['B', 'kB', 'MB', 'GB', 'TB', 'PB']);
}

export function amount(value: number): string {
  return scaled(value, ['', 'k', 'M', 'B', 'T', 'P']).trim();
}

/** Work of an op: `106 TFLOP`; empty for one that computes nothing. */
export function flopsText(value: number): string {
  return value > 0 ? scaled(value, ['FLOP', 'kFLOP', 'MFLOP', 'GFLOP', 'TFLOP', 'PFLOP']) : '';
}

function scaled(value: number, units: string[], base = 1000): string {
  let [size, at] = [value, 0];
  while (size >= base - 0.5 && at < units.length - 1) [size, at] = [size / base, at + 1];
  return `${size >= 100 ? size.toFixed(0) : String(Number(size.toPrecision(3)))} ${units[at] ?? ''}`;
}

export function percent(share: number): string {
  const value = share * 100;
  return value > 0 && value < 0.1
    ? '< 0.1 %'
    : `${value < 10 ? Number(value.toFixed(1)) : value.toFixed(0)} %`;
}

/** The mesh as `data 2 × tensor 8`, with the stages in front. */
export function meshText(mesh: Mesh): string {
  const axes = mesh.axes.map((axis, i) => `${axis} ${mesh.shape[i] ?? 1}`);
  const parts = mesh.stages > 1 ? [`${mesh.stages} stages`, ...axes] : axes;
  return parts.join(' × ') || 'one device';
}

export function isProven(view: View): boolean {
  return view.gap !== null && view.gap <= 5e-4;
}

/** What is proved of a plan; a gap that is no number proves nothing. */
export function gapText(view: View): string {
  if (isProven(view)) return 'Proven best, gap 0';
  const unsupported = unsupportedText(view);
  if (view.gap === null) return `Not proved: ${unsupported || 'the search gives no near bound'}`;
  const what = view.complete ? 'At most' : 'Stopped early: at most';
  return `${what} ${percent(view.gap)} from best`;
}

/** Ops without a rule that hold more of the work than a proof may leave out; empty where a proof stands. */
function unsupportedText(view: View): string {
  const shares = Object.values(view.unsupported_work);
  const total = shares.reduce((sum, share) => sum + share, 0);
  const kinds = Object.keys(view.unsupported_work).slice(0, 5).join(', ');
  return total > 0.01 ? `${percent(total)} of the work is in ops without a rule (${kinds})` : '';
}

/** What a node is split along: `batch ÷16`, `feature ÷8, batch ÷2`, or `replica`. */
export function splitText(node: GraphNode, mesh: Mesh): string {
  const ways = new Map<string, number>();
  node.split.forEach((role, axis) => {
    if (role) ways.set(role, (ways.get(role) ?? 1) * (mesh.shape[axis] ?? 1));
  });
  return [...ways].map(([role, parts]) => `${role} ÷${parts}`).join(', ') || 'replica';
}

export function moveText(move: LayoutChange, mesh: Mesh): string {
  const times = move.times > 1 ? `${move.times} × ` : '';
  return `${times}${move.what} over ${mesh.axes[move.axis] ?? 'the mesh'}, ${bytes(move.sent_bytes)} sent per rank`;
}

/** Memory of a device in binary units, as devices are sold: 80 GiB. What is sent goes in decimal ones, as links do. */
export function memoryText(value: number): string {
  return scaled(value, ['B', 'KiB', 'MiB', 'GiB', 'TiB'], 1024);
}

/** What a rank can have of a device: `74.2 GiB usable of 80 GiB`, or the requested limit. */
export function limitText(view: View): string {
  const { memory_bytes, usable_bytes } = view.cluster;
  const usable = view.limit_bytes === usable_bytes;
  if (view.limit_bytes >= memory_bytes) return memoryText(view.limit_bytes);
  return `${memoryText(view.limit_bytes)} ${usable ? 'usable of' : 'allowed of'} ${memoryText(memory_bytes)}`;
}

const SHARDED = [
  '',
  'optimizer states',
  'optimizer states and gradients',
  'optimizer states, gradients and parameters',
];

/** Where an op's weights are: split in use, and what the ranks that hold the same part share out among them. */
export function weightsText(node: GraphNode, view: View): string {
  const devices = view.mesh.shape.reduce((product, size) => product * size, 1);
  const weights = view.tensors.filter((one) => one.kind === 'parameter' && node.tensors.includes(one.id));
  const parts = weights.map((one) => one.splits.reduce((product, split) => product * split.parts, 1));
  const [least, most] = [Math.min(...parts), Math.max(...parts)];
  const shared = SHARDED[node.zero] ? `${SHARDED[node.zero] ?? ''} sharded (ZeRO ${node.zero})` : '';
  if (parts.length === 0 || most === 1) return shared || 'whole on every rank';
  const split = least === most ? `split into ${most} parts` : `split into ${least} to ${most} parts`;
  if (least === devices) return `${split}, one on each rank`;
  return `${split}, copies on ${devices / most} ranks${shared ? `, among these ${shared}` : ''}`;
}

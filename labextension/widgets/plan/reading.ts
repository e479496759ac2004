/** The texts of the model graph: on its nodes, beside its edges, below it, and as a table. */

import { h } from '../lib/dom';
import type { Placed } from './layout';
import { table } from './section';
import type { GraphEdge, GraphNode, LayoutChange, View } from './view';
import { amount, bytes, moveText, splitText } from './format';

const COLOURS = ['data', 'sequence', 'tensor', 'expert', 'spatial', 'replica'];
const MEANING: Record<string, string> = {
  data: 'batch',
  sequence: 'sequence',
  tensor: 'features or heads',
  expert: 'experts',
  spatial: 'image area',
  replica: 'not split',
};
const MOST_LETTERS = 22;

const ROLES: Record<string, string> = {
  batch: 'data',
  sequence: 'sequence',
  expert: 'expert',
  spatial: 'spatial',
};

/** The colours of all that a node is split along; data, which nearly all are, comes first. */
export function coloursOf(node: GraphNode): string[] {
  const found = new Set(node.split.filter((role) => role !== null).map((role) => ROLES[role] ?? 'tensor'));
  return found.size > 0 ? COLOURS.filter((colour) => found.has(colour)) : ['replica'];
}

interface Face {
  name: string;
  below: string;
  flags: string;
  colours: string[];
  spoken: string;
}

/** What is written on an op, or on a closed block. */
export function face(one: Placed, first: GraphNode, view: View): Face {
  if (one.closed) {
    const group = view.groups[one.group];
    const name = `${group?.label ?? 'block'} × ${group?.count ?? 1}`;
    const below = 'open this block';
    return { name, below, flags: '', colours: blockColours(one.nodes), spoken: `${name}, ${below}` };
  }
  const below = splitText(first, view.mesh);
  const zero = first.zero ? `Z${first.zero}` : '';
  const flags = [zero, first.recompute === 'none' ? '' : '↻', first.offload ? '⇅' : '']
    .filter(Boolean)
    .join(' ');
  const equal = first.count > 1 ? `, ${first.count} equal ones` : '';
  const letters = MOST_LETTERS - (flags ? flags.length + 2 : 0);
  const spoken = `${first.label}, ${below}${equal}`;
  return { name: cut(first.label, letters), below, flags, colours: coloursOf(first), spoken };
}

function blockColours(nodes: GraphNode[]): string[] {
  const found = new Set(nodes.filter((node) => node.parameters > 0).flatMap(coloursOf));
  return COLOURS.filter((colour) => found.has(colour));
}

export function legend(view: View): HTMLElement[] {
  const used = new Set(view.nodes.flatMap(coloursOf));
  const colours = COLOURS.filter((colour) => used.has(colour)).map((colour) =>
    h('span', { 'data-colour': colour }, h('i', {}), `${colour}: ${MEANING[colour] ?? colour}`),
  );
  const marks = [
    view.nodes.some((node) => node.zero > 0) ? 'Z1–Z3 states sharded' : '',
    view.nodes.some((node) => node.recompute !== 'none') ? '↻ recomputed' : '',
    view.nodes.some((node) => node.offload) ? '⇅ kept on the host' : '',
  ].filter(Boolean);
  return [...colours, ...marks.map((mark) => h('span', {}, mark))];
}

export function edgeLines(edge: GraphEdge, view: View): string[] {
  const tensor = view.tensors.find((one) => one.id === edge.tensor);
  const named = tensor ? `${tensor.name} [${tensor.shape.join(', ')}]` : 'tensor';
  const say = (way: string, moves: LayoutChange[]): string[] =>
    moves.map((move) => `${way}: ${moveText(move, view.mesh)}`);
  const moves = [...say('forward', edge.forward), ...say('backward', edge.backward)];
  return [
    `${named}, ${bytes(edge.bytes)}`,
    ...(moves.length > 0 ? moves : ['stays where it is: nothing is sent']),
  ];
}

export function dataTable(view: View): HTMLElement {
  const name = new Map(view.nodes.map((node) => [node.id, node.label]));
  const rows = view.nodes.map((node) => {
    const coming = view.edges.filter((edge) => edge.target === node.id);
    const moves = coming.flatMap((edge) =>
      [...edge.forward, ...edge.backward].map(
        (move) => `${name.get(edge.source) ?? ''}: ${moveText(move, view.mesh)}`,
      ),
    );
    return [
      node.label,
      String(node.count),
      splitText(node, view.mesh),
      node.zero ? `ZeRO ${node.zero}` : '',
      node.stages.join(', '),
      amount(node.parameters * node.count),
      moves.join('; '),
    ];
  });
  const heads = ['op', 'times', 'split', 'states', 'stages', 'parameters', 'what arrives'];
  return table(`${view.nodes.length} ops and blocks of ${view.name}`, heads, rows);
}

export function cut(text: string, letters = MOST_LETTERS): string {
  return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
}

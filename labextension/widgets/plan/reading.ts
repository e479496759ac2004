/** What the model graph says in words: on its nodes, beside its edges, below it, and as a table. */

import { h } from '../lib/dom';
import type { Placed } from './layout';
import { table } from './section';
import type { GraphEdge, GraphNode, Move, View } from './view';
import { amount, bytes, moveText, splitText } from './words';

const COLOURS = ['data', 'sequence', 'tensor', 'expert', 'spatial', 'mixed', 'replica'];
const MEANING: Record<string, string> = {
  data: 'batch',
  sequence: 'sequence',
  tensor: 'features or heads',
  expert: 'experts',
  spatial: 'image area',
  mixed: 'several',
  replica: 'not split',
};
const MOST_LETTERS = 20;

interface Face {
  name: string;
  below: string;
  flags: string;
  colour: string;
  spoken: string;
}

/** What is written on an op, or on a closed block. */
export function face(one: Placed, first: GraphNode, view: View): Face {
  if (one.closed) {
    const group = view.groups[one.group];
    const name = `${group?.label ?? 'block'} × ${group?.count ?? 1}`;
    const below = 'open this block';
    return { name, below, flags: '', colour: colourOf(one.nodes), spoken: `${name}, ${below}` };
  }
  const below = splitText(first, view.mesh);
  const zero = first.zero ? `Z${first.zero}` : '';
  const flags = [zero, first.recompute === 'none' ? '' : '↻', first.offload ? '⇅' : '']
    .filter(Boolean)
    .join(' ');
  const equal = first.count > 1 ? `, ${first.count} equal ones` : '';
  return {
    name: first.label,
    below,
    flags,
    colour: first.colour,
    spoken: `${first.label}, ${below}${equal}`,
  };
}

function colourOf(nodes: GraphNode[]): string {
  const colours = new Set(nodes.filter((node) => node.parameters > 0).map((node) => node.colour));
  return colours.size === 1 ? ([...colours][0] ?? 'mixed') : 'mixed';
}

export function legend(view: View): HTMLElement[] {
  const used = new Set(view.nodes.map((node) => node.colour));
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
  const say = (way: string, moves: Move[]): string[] =>
    moves.map((move) => `${way}: ${moveText(move, view.mesh)}`);
  const moves = [...say('forward', edge.forward), ...say('backward', edge.backward)];
  return [
    `${named}, ${bytes(edge.bytes)}`,
    ...(moves.length > 0 ? moves : ['stays where it is: nothing is sent']),
  ];
}

export function twin(view: View): HTMLElement {
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

export function cut(text: string): string {
  return text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS - 1)}…` : text;
}

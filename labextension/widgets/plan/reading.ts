/** The texts of the model graph: on its nodes, beside its edges, below it, and as a table. */

import { h } from '../lib/dom';
import type { Translator } from '../lib/translator';
import type { Placed } from './layout';
import { table } from './section';
import type { GraphEdge, GraphNode, LayoutChange, View } from './view';
import { amount, memoryText } from './format';
import { movesText, splitText } from './texts';

const COLOURS = ['data', 'sequence', 'tensor', 'expert', 'spatial', 'replica'];
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
export function face(one: Placed, first: GraphNode, view: View, trans: Translator): Face {
  if (one.closed) return closedFace(one, view, trans);
  const below = splitText(first, view.mesh, trans);
  const zero = first.zero ? `Z${first.zero}` : '';
  const flags = [zero, first.recompute === 'none' ? '' : '↻', first.offload ? '⇅' : '']
    .filter(Boolean)
    .join(' ');
  const equal = first.count > 1 ? [trans.__('%1 equal ones', first.count)] : [];
  const letters = MOST_LETTERS - (flags ? flags.length + 2 : 0);
  const spoken = [first.label, below, ...equal].join(', ');
  return { name: cut(first.label, letters), below, flags, colours: coloursOf(first), spoken };
}

function closedFace(one: Placed, view: View, trans: Translator): Face {
  const group = view.groups[one.group];
  const name = `${group?.label ?? trans.__('block')} × ${group?.count ?? 1}`;
  const below = trans.__('open this block');
  return { name, below, flags: '', colours: blockColours(one.nodes), spoken: `${name}, ${below}` };
}

function blockColours(nodes: GraphNode[]): string[] {
  const found = new Set(nodes.filter((node) => node.parameters > 0).flatMap(coloursOf));
  return COLOURS.filter((colour) => found.has(colour));
}

export function legend(view: View, trans: Translator): HTMLElement[] {
  const used = new Set(view.nodes.flatMap(coloursOf));
  const meanings = meaningsOf(trans);
  const colours = COLOURS.filter((colour) => used.has(colour)).map((colour) =>
    h('span', { 'data-colour': colour }, h('i', {}), meanings[colour] ?? colour),
  );
  const marks = [
    view.nodes.some((node) => node.zero > 0) ? trans.__('Z1–Z3 states sharded') : '',
    view.nodes.some((node) => node.recompute !== 'none') ? trans.__('↻ recomputed') : '',
    view.nodes.some((node) => node.offload) ? trans.__('⇅ kept on the host') : '',
  ].filter(Boolean);
  return [...colours, ...marks.map((mark) => h('span', {}, mark))];
}

function meaningsOf(trans: Translator): Record<string, string> {
  return {
    data: trans.__('data: batch'),
    sequence: trans.__('sequence'),
    tensor: trans.__('tensor: features or heads'),
    expert: trans.__('expert: experts'),
    spatial: trans.__('spatial: image area'),
    replica: trans.__('replica: not split'),
  };
}

export function edgeLines(edge: GraphEdge, view: View, trans: Translator): string[] {
  const tensor = view.tensors.find((one) => one.id === edge.tensor);
  const named = tensor ? `${tensor.name} [${tensor.shape.join(', ')}]` : trans.__('tensor');
  const said = (found: LayoutChange[]): string => movesText(found, view.mesh, trans);
  const moves = [
    ...(edge.forward.length > 0 ? [trans.__('forward: %1', said(edge.forward))] : []),
    ...(edge.backward.length > 0 ? [trans.__('backward: %1', said(edge.backward))] : []),
  ];
  const still = trans.__('stays where it is: nothing is sent');
  return [`${named}, ${memoryText(edge.bytes)}`, ...(moves.length > 0 ? moves : [still])];
}

export function dataTable(view: View, trans: Translator): HTMLElement {
  const name = new Map(view.nodes.map((node) => [node.id, node.label]));
  const rows = view.nodes.map((node) => {
    const coming = view.edges.filter((edge) => edge.target === node.id);
    const moves = coming
      .filter((edge) => edge.forward.length + edge.backward.length > 0)
      .map((edge) => {
        const sent = [...edge.forward, ...edge.backward];
        return `${name.get(edge.source) ?? ''}: ${movesText(sent, view.mesh, trans)}`;
      });
    return [
      node.label,
      String(node.count),
      splitText(node, view.mesh, trans),
      node.zero ? `ZeRO ${node.zero}` : '',
      node.stages.join(', '),
      amount(node.parameters * node.count),
      moves.join('; '),
    ];
  });
  const caption = trans.__('%1 ops and blocks of %2', view.nodes.length, view.name);
  return table(caption, headsOf(trans), rows);
}

function headsOf(trans: Translator): string[] {
  return [
    trans.__('op'),
    trans.__('times'),
    trans.__('split'),
    trans.__('states'),
    trans.__('stages'),
    trans.__('parameters'),
    trans.__('what arrives'),
  ];
}

export function cut(text: string, letters = MOST_LETTERS): string {
  return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
}

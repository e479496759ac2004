/** Where nodes and edges of the model graph lie: dagre over nodes, blocks that repeat as boxes around theirs. */

import type { EdgeLabel, GraphLabel, NodeLabel } from '@dagrejs/dagre';
import { Graph, layout } from '@dagrejs/dagre';
import type { GraphEdge, GraphNode, View } from './view';

/** Room for what is sent, beside its edge. */
const LABEL = 50;
export const NODE = { width: 148, height: 34 };
/** Above this many nodes, blocks after the first start closed. */
const MANY = 40;

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A node, or a closed block with all its nodes. */
export interface Placed extends Box {
  key: string;
  group: number;
  nodes: GraphNode[];
  closed: boolean;
}

type Dagre = Graph<GraphLabel, NodeLabel, EdgeLabel>;

interface Point {
  x: number;
  y: number;
}

export interface EdgePath {
  points: Point[];
  label: Point;
  edges: GraphEdge[];
  repeats: boolean;
}

export interface Picture {
  width: number;
  height: number;
  placed: Placed[];
  frames: (Box & { group: number })[];
  lines: EdgePath[];
}

/** The blocks that are closed until someone opens them. */
export function closedAtFirst(view: View): Set<number> {
  const many = view.nodes.length > MANY;
  return new Set(many ? view.groups.map((_, i) => i).slice(1) : []);
}

export function arrange(view: View, closed: Set<number>): Picture {
  const graph: Dagre = new Graph<GraphLabel, NodeLabel, EdgeLabel>({ compound: true, multigraph: false });
  graph.setGraph({ rankdir: 'TB', nodesep: 14, ranksep: 22, marginx: 14, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  const keyOf = new Map(
    view.nodes.map((node) => [node.id, closed.has(node.group) ? `g${node.group}` : `n${node.id}`]),
  );
  const members = new Map<string, GraphNode[]>();
  for (const node of view.nodes) {
    const key = keyOf.get(node.id) ?? '';
    members.set(key, [...(members.get(key) ?? []), node]);
  }
  addNodes(graph, members, closed);
  const joined = join(view, keyOf);
  for (const { from, to, repeats, edges } of joined.values()) {
    const label = edges.some(moves) ? { width: LABEL, height: 1, labelpos: 'r' as const } : {};
    if (!repeats) graph.setEdge(from, to, label);
  }
  layout(graph);
  return picture(view, graph, members, [...joined.values()]);
}

/** Ops and closed blocks as nodes, those of an open block in its frame. */
function addNodes(
  graph: Dagre,
  members: ReadonlyMap<string, GraphNode[]>,
  closed: ReadonlySet<number>,
): void {
  for (const [key, nodes] of members) {
    const group = nodes[0]?.group ?? -1;
    graph.setNode(key, { ...NODE });
    if (group < 0 || closed.has(group)) continue;
    graph.setNode(`f${group}`, { width: 0, height: 0 });
    graph.setParent(key, `f${group}`);
  }
}

interface Joined {
  from: string;
  to: string;
  repeats: boolean;
  edges: GraphEdge[];
}

export function moves(edge: GraphEdge): boolean {
  return edge.forward.length + edge.backward.length > 0;
}

/** Edges between the same two places are one line; those inside a closed block are none. */
function join(view: View, keyOf: Map<number, string>): Map<string, Joined> {
  const joined = new Map<string, Joined>();
  for (const edge of view.edges) {
    const [from, to] = [keyOf.get(edge.source) ?? '', keyOf.get(edge.target) ?? ''];
    if (from === to) continue;
    const key = `${from} ${to} ${edge.repeats}`;
    const found = joined.get(key) ?? { from, to, repeats: edge.repeats, edges: [] };
    found.edges.push(edge);
    joined.set(key, found);
  }
  return joined;
}

function picture(view: View, graph: Dagre, members: Map<string, GraphNode[]>, joined: Joined[]): Picture {
  const placed = [...members].map(([key, nodes]) => {
    const group = nodes[0]?.group ?? -1;
    return { key, group, nodes, closed: key.startsWith('g'), ...box(graph, key) };
  });
  const frames = view.groups.flatMap((_, group) => {
    const inside = placed.filter((one) => one.group === group && !one.closed);
    return inside.length > 0 ? [{ group, ...around(inside) }] : [];
  });
  const at = new Map(placed.map((one) => [one.key, one]));
  const lines = joined.flatMap(({ from, to, repeats, edges }): EdgePath[] => {
    const [a, b] = [at.get(from), at.get(to)];
    if (!a || !b) return [];
    const frame = frames.find((one) => one.group === a.group);
    if (repeats) {
      const points = back(a, b, frame);
      return [{ points, label: { x: b.x, y: b.y }, edges, repeats }];
    }
    const { points = [], x = 0, y = 0 } = graph.edge(from, to) as Partial<Point> & { points?: Point[] };
    return [{ points, label: { x: x - LABEL / 2 + 4, y }, edges, repeats }];
  });
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const right = Math.max(width, ...frames.map((frame) => frame.x + frame.width + 8));
  return { width: right, height, placed, frames, lines };
}

function box(graph: Dagre, key: string): Box {
  const { x, y } = graph.node(key) as { x: number; y: number };
  return { x: x - NODE.width / 2, y: y - NODE.height / 2, ...NODE };
}

function around(boxes: Box[]): Box {
  const x = Math.min(...boxes.map((one) => one.x)) - 10;
  const y = Math.min(...boxes.map((one) => one.y)) - 9;
  const right = Math.max(...boxes.map((one) => one.x + one.width)) + 26;
  const bottom = Math.max(...boxes.map((one) => one.y + one.height)) + 9;
  return { x, y, width: right - x, height: bottom - y };
}

/** The way from a block's end to the beginning of its next copy runs along the frame's right side. */
function back(from: Box, to: Box, frame: Box | undefined): Point[] {
  const side = (frame ? frame.x + frame.width : Math.max(from.x, to.x) + NODE.width + 20) - 10;
  const [low, high] = [from.y + from.height / 2, to.y + to.height / 2];
  return [
    { x: from.x + from.width, y: low },
    { x: side, y: low },
    { x: side, y: high },
    { x: to.x + to.width, y: high },
  ];
}

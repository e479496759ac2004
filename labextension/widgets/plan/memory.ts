/** What a rank of each stage holds at its peak, against the limit. */

import { h } from '../lib/dom';
import { Section, table } from './section';
import type { Session } from './session';
import type { Rank, View } from './view';
import { bytes, memoryText, percent } from './format';

const PARTS: [keyof Rank, string][] = [
  ['parameter_bytes', 'parameters'],
  ['gradient_bytes', 'gradients'],
  ['optimizer_bytes', 'optimizer'],
  ['activation_bytes', 'activations'],
];

export class Memory {
  readonly #body = h('div', { class: 'at-memory-body' });
  readonly #section: Section;
  readonly root: HTMLElement;
  #drawn: View | undefined;

  constructor(readonly session: Session) {
    const legend = PARTS.map(([, word]) => h('span', { 'data-part': word }, h('i', {}), word));
    const chart = h('div', {}, this.#body, h('div', { class: 'at-legend' }, ...legend));
    this.#section = new Section('memory', 'Memory of a rank', chart, () => dataTable(session.view));
    this.root = this.#section.root;
  }

  update(): void {
    const { view } = this.session;
    if (this.#drawn === view) return;
    this.#drawn = view;
    const widest = Math.max(...view.ranks.map((rank) => Math.max(rank.limit_bytes, rank.peak_bytes)), 1);
    this.#body.replaceChildren(...view.ranks.map((rank) => row(rank, widest, view.ranks.length > 1)));
    const peak = view.cost.peak_memory_bytes;
    this.#section.note(`at most ${memoryText(peak)}, ${percent(peak / view.limit_bytes)} of the limit`);
    this.#section.refresh();
  }
}

function row(rank: Rank, widest: number, many: boolean): HTMLElement {
  const share = (part: number): string => `${((part / widest) * 100).toFixed(2)}%`;
  const parts = PARTS.map(([key, word]) =>
    h('i', {
      'data-part': word,
      style: `width:${share(Number(rank[key]))}`,
      title: `${word}: ${memoryText(Number(rank[key]))}`,
    }),
  );
  const name = many ? `stage ${rank.stage}` : 'each rank';
  const spoken = PARTS.map(([key, word]) => `${word} ${memoryText(Number(rank[key]))}`).join(', ');
  const limit = h('u', {
    style: `left:${share(rank.limit_bytes)}`,
    title: `limit ${memoryText(rank.limit_bytes)}`,
  });
  const text = `${memoryText(rank.peak_bytes)} of ${memoryText(rank.limit_bytes)}`;
  return h(
    'div',
    { class: 'at-memory-row' },
    h('span', {}, name),
    h('div', { class: 'at-tank', role: 'img', 'aria-label': `${name}: ${spoken}; ${text}` }, ...parts, limit),
    h('span', { class: 'at-soft' }, text),
  );
}

export function dataTable(view: View): HTMLElement {
  const axes = [...new Set(view.ranks.flatMap((rank) => Object.keys(rank.sent_bytes)))];
  const words = PARTS.map(([, word]) => word);
  const sent = axes.map((axis) => `sent on ${axis}`);
  const heads = ['stage', 'device', 'ranks', 'blocks', ...words, 'peak', 'limit', ...sent];
  const rows = view.ranks.map((rank) => [
    String(rank.stage),
    rank.device,
    String(rank.ranks),
    String(rank.blocks),
    ...PARTS.map(([key]) => memoryText(Number(rank[key]))),
    memoryText(rank.peak_bytes),
    memoryText(rank.limit_bytes),
    ...axes.map((axis) => bytes(rank.sent_bytes[axis] ?? 0)),
  ]);
  return table('What a rank holds at its peak, and sends in a step', heads, rows);
}

/** What a rank of each stage holds at its peak, against the limit. */

import { h } from '../lib/dom';
import type { Translator } from '../lib/translator';
import { Section, table } from './section';
import type { Session } from './session';
import type { Rank, View } from './view';
import { memoryText, percent } from './format';

interface Part {
  key: keyof Rank;
  /** Which colour it has. */
  part: string;
  word: string;
}

function partsOf(trans: Translator): Part[] {
  return [
    { key: 'parameter_bytes', part: 'parameters', word: trans.__('parameters') },
    { key: 'gradient_bytes', part: 'gradients', word: trans.__('gradients') },
    { key: 'optimizer_bytes', part: 'optimizer', word: trans.__('optimizer') },
    { key: 'activation_bytes', part: 'activations', word: trans.__('activations') },
  ];
}

export class Memory {
  readonly #body = h('div', { class: 'at-memory-body' });
  readonly #section: Section;
  readonly root: HTMLElement;
  #drawn: View | undefined;

  constructor(readonly session: Session) {
    const { trans } = session;
    const legend = partsOf(trans).map(({ part, word }) => h('span', { 'data-part': part }, h('i', {}), word));
    const chart = h('div', {}, this.#body, h('div', { class: 'at-legend' }, ...legend));
    const table = (): HTMLElement => dataTable(session.view, trans);
    this.#section = new Section('memory', trans.__('Memory of a rank'), chart, table, trans);
    this.root = this.#section.root;
  }

  update(): void {
    const { view, trans } = this.session;
    if (this.#drawn === view) return;
    this.#drawn = view;
    const widest = Math.max(...view.ranks.map((rank) => Math.max(rank.limit_bytes, rank.peak_bytes)), 1);
    this.#body.replaceChildren(...view.ranks.map((rank) => row(rank, widest, view.ranks.length > 1, trans)));
    const peak = view.cost.peak_memory_bytes;
    const share = percent(peak / view.limit_bytes);
    this.#section.note(trans.__('at most %1, %2 of the limit', memoryText(peak), share));
    this.#section.refresh();
  }
}

function row(rank: Rank, widest: number, many: boolean, trans: Translator): HTMLElement {
  const share = (part: number): string => `${((part / widest) * 100).toFixed(2)}%`;
  const words = partsOf(trans);
  const parts = words.map(({ key, part, word }) =>
    h('i', {
      'data-part': part,
      style: `width:${share(Number(rank[key]))}`,
      title: `${word}: ${memoryText(Number(rank[key]))}`,
    }),
  );
  const name = many ? trans.__('stage %1', rank.stage) : trans.__('each rank');
  const spoken = words.map(({ key, word }) => `${word} ${memoryText(Number(rank[key]))}`).join(', ');
  const most = memoryText(rank.limit_bytes);
  const limit = h('u', { style: `left:${share(rank.limit_bytes)}`, title: trans.__('limit %1', most) });
  const text = trans.__('%1 of %2', memoryText(rank.peak_bytes), most);
  return h(
    'div',
    { class: 'at-memory-row' },
    h('span', {}, name),
    h('div', { class: 'at-tank', role: 'img', 'aria-label': `${name}: ${spoken}; ${text}` }, ...parts, limit),
    h('span', { class: 'at-soft' }, text),
  );
}

function dataTable(view: View, trans: Translator): HTMLElement {
  const axes = [...new Set(view.ranks.flatMap((rank) => Object.keys(rank.sent_bytes)))];
  const parts = partsOf(trans);
  const heads = [
    ...[trans.__('stage'), trans.__('device'), trans.__('ranks'), trans.__('blocks')],
    ...parts.map(({ word }) => word),
    ...[trans.__('peak'), trans.__('limit')],
    ...axes.map((axis) => trans.__('sent on %1', axis)),
  ];
  const rows = view.ranks.map((rank) => [
    String(rank.stage),
    rank.device,
    String(rank.ranks),
    String(rank.blocks),
    ...parts.map(({ key }) => memoryText(Number(rank[key]))),
    memoryText(rank.peak_bytes),
    memoryText(rank.limit_bytes),
    ...axes.map((axis) => memoryText(rank.sent_bytes[axis] ?? 0)),
  ]);
  return table(trans.__('What a rank holds at its peak, and sends in a step'), heads, rows);
}

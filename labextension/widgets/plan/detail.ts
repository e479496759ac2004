/** What is to be known of the chosen op: its split, its tensors, what is sent for it, why it is split so. */

import { h, setText } from '../lib/dom';
import type { Translator } from '../lib/translator';
import { table } from './section';
import type { Explanation, Session } from './session';
import type { GraphNode, LayoutChange, Tensor, View } from './view';
import { amount, flopsText } from './format';
import { movesText, splitText, weightsText } from './texts';

export class Detail {
  readonly root: HTMLElement;
  readonly #body = h('div', {});
  readonly #why = h('p', {});
  readonly #ways: HTMLElement;
  #drawn: [View, string] | undefined;
  #told: Explanation | undefined;
  #chips = new Map<number, HTMLButtonElement>();

  constructor(readonly session: Session) {
    const { trans } = session;
    const ways = trans.__('Ways to split it');
    this.#ways = h('div', { class: 'at-why at-scroll', tabindex: 0, role: 'region', 'aria-label': ways });
    const summary = h('summary', {}, trans.__('Why this split?'));
    const details = h('details', { class: 'at-details', open: true }, summary, this.#why, this.#ways);
    const label = trans.__('Chosen op');
    this.root = h('section', { class: 'at-section at-detail', 'aria-label': label }, this.#body, details);
  }

  update(): void {
    const { view, op, explanations, tensor } = this.session;
    const node = this.session.node();
    if (node && (this.#drawn?.[0] !== view || this.#drawn[1] !== op)) {
      this.#drawn = [view, op];
      this.#fill(node, view);
    }
    for (const [id, chip] of this.#chips) chip.setAttribute('aria-pressed', String(id === tensor));
    this.#explain(explanations.get(op));
  }

  #explain(told: Explanation | undefined): void {
    const { trans } = this.session;
    setText(this.#why, told?.text ?? trans.__('Asking the kernel…'));
    if (told === this.#told) return;
    this.#told = told;
    this.#ways.hidden = !told?.rows.length;
    if (told) this.#ways.replaceChildren(table('', told.heads, told.rows));
  }

  #fill(node: GraphNode, view: View): void {
    const tensors = node.tensors.flatMap((id) => view.tensors.filter((tensor) => tensor.id === id));
    this.#chips = new Map(tensors.map((tensor) => [tensor.id, this.#chip(tensor)]));
    const { trans } = this.session;
    const lines = [...facts(node, view, trans), ...moves(node, view, trans)];
    const label = trans.__('Tensors: show who holds which slice');
    this.#body.replaceChildren(
      h('h4', { class: 'at-title' }, node.op, h('span', { class: 'at-soft' }, ` ${node.kind}`)),
      h('ul', { class: 'at-facts-list' }, ...lines.map((line) => h('li', {}, line))),
      h('div', { class: 'at-chips', role: 'group', 'aria-label': label }, ...this.#chips.values()),
    );
  }

  #chip(tensor: Tensor): HTMLButtonElement {
    const look = (): void => {
      this.session.hover(tensor.id);
    };
    const leave = (): void => {
      this.session.hover(-1);
    };
    const chosen = (): void => {
      this.session.chooseTensor(tensor.id);
    };
    const listeners = {
      onmouseenter: look,
      onfocus: look,
      onmouseleave: leave,
      onblur: leave,
      onclick: chosen,
    };
    const whole = `[${tensor.shape.join(', ')}]`;
    const local = `[${tensor.local_shape.join(', ')}]`;
    const isWhole = this.session.trans.__('%1 whole', whole);
    return h(
      'button',
      { type: 'button', class: 'at-chip', ...listeners },
      h('b', {}, tensor.name.split('.').slice(-2).join('.')),
      h('span', { class: 'at-soft' }, whole === local ? isWhole : `${whole} → ${local}`),
      h('code', {}, tensor.placements.join(' ')),
    );
  }
}

function facts(node: GraphNode, view: View, trans: Translator): string[] {
  const split = trans.__('Split: %1', splitText(node, view.mesh, trans));
  const found = [split, workText(node, trans)];
  if (node.parameters > 0)
    found.push(trans.__('%1 parameters, %2', amount(node.parameters), weightsText(node, view, trans)));
  if (node.recompute !== 'none') found.push(trans.__('activations recomputed: %1', node.recompute));
  if (node.offload) found.push(hostText(node, trans));
  return found.filter(Boolean);
}

function workText({ flops, count }: GraphNode, trans: Translator): string {
  if (flops <= 0) return '';
  return count > 1
    ? trans.__('%1 per step, %2 equal ones', flopsText(flops), count)
    : trans.__('%1 per step', flopsText(flops));
}

function hostText({ host_table }: GraphNode, trans: Translator): string {
  return host_table
    ? trans.__('table and its optimizer states kept on the host')
    : trans.__('optimizer states kept on the host');
}

function moves(node: GraphNode, view: View, trans: Translator): string[] {
  const name = (id: number): string => view.nodes.find((one) => one.id === id)?.label ?? trans.__('input');
  const lines: string[] = [];
  const say = (words: string, found: LayoutChange[]): void => {
    if (found.length > 0) lines.push(words.replace('%', movesText(found, view.mesh, trans)));
  };
  for (const { source, forward, backward } of view.edges.filter((edge) => edge.target === node.id)) {
    say(trans.__('from %1: %2', name(source), '%'), forward);
    say(trans.__('gradient to %1: %2', name(source), '%'), backward);
  }
  say(trans.__('gradients and weights: %1', '%'), node.syncs);
  return lines;
}

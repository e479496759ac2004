/** What is to be known of the chosen op: its split, its tensors, what is sent for it, why it is split so. */

import { h, setText } from '../lib/dom';
import type { Session } from './session';
import type { GraphNode, LayoutChange, Tensor, View } from './view';
import { amount, flopsText, moveText, splitText, weightsText } from './format';

export class Detail {
  readonly root = h('section', { class: 'at-section at-detail', 'aria-label': 'Chosen op' });
  readonly #body = h('div', {});
  readonly #why = h('p', {});
  readonly #ways = h('pre', { class: 'at-why', tabindex: 0, 'aria-label': 'Ways to split it' });
  #drawn: [View, string] | undefined;
  #chips = new Map<number, HTMLButtonElement>();

  constructor(readonly session: Session) {
    const summary = h('summary', {}, 'Why this split?');
    this.root.append(
      this.#body,
      h('details', { class: 'at-details', open: true }, summary, this.#why, this.#ways),
    );
  }

  update(): void {
    const { view, op, explanations, tensor } = this.session;
    const node = this.session.node();
    if (node && (this.#drawn?.[0] !== view || this.#drawn[1] !== op)) {
      this.#drawn = [view, op];
      this.#fill(node, view);
    }
    for (const [id, chip] of this.#chips) chip.setAttribute('aria-pressed', String(id === tensor));
    // The last line sums up the table before it.
    const lines = (explanations.get(op) ?? 'Asking the kernel…').trimEnd().split('\n');
    setText(this.#why, lines.at(-1) ?? '');
    setText(this.#ways, lines.slice(1, -1).join('\n'));
    this.#ways.hidden = lines.length < 3;
  }

  #fill(node: GraphNode, view: View): void {
    const tensors = node.tensors.flatMap((id) => view.tensors.filter((tensor) => tensor.id === id));
    this.#chips = new Map(tensors.map((tensor) => [tensor.id, this.#chip(tensor)]));
    const lines = [...facts(node, view), ...moves(node, view)];
    this.#body.replaceChildren(
      h('h4', { class: 'at-title' }, node.op, h('span', { class: 'at-soft' }, ` ${node.kind}`)),
      h('ul', { class: 'at-facts-list' }, ...lines.map((line) => h('li', {}, line))),
      h(
        'div',
        { class: 'at-chips', role: 'group', 'aria-label': 'Tensors: show who holds which slice' },
        ...this.#chips.values(),
      ),
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
    return h(
      'button',
      { type: 'button', class: 'at-chip', ...listeners },
      h('b', {}, tensor.name.split('.').slice(-2).join('.')),
      h('span', { class: 'at-soft' }, whole === local ? `${whole} whole` : `${whole} → ${local}`),
      h('code', {}, tensor.placements.join(' ')),
    );
  }
}

function facts(node: GraphNode, view: View): string[] {
  const times = node.count > 1 ? `, ${node.count} equal ones` : '';
  const work = node.flops > 0 ? [`${flopsText(node.flops)} per step${times}`] : [];
  const states =
    node.parameters > 0 ? [`${amount(node.parameters)} parameters, ${weightsText(node, view)}`] : [];
  const kept = node.recompute === 'none' ? [] : [`activations recomputed: ${node.recompute}`];
  const what = node.host_table ? 'table and its optimizer states' : 'optimizer states';
  const host = node.offload ? [`${what} kept on the host`] : [];
  return [`Split: ${splitText(node, view.mesh)}`, ...work, ...states, ...kept, ...host];
}

function moves(node: GraphNode, view: View): string[] {
  const name = (id: number): string => view.nodes.find((other) => other.id === id)?.label ?? 'input';
  const arriving = view.edges
    .filter((edge) => edge.target === node.id)
    .flatMap((edge) => [
      ...edge.forward.map((move) => `from ${name(edge.source)}: ${moveText(move, view.mesh)}`),
      ...edge.backward.map((move) => `gradient to ${name(edge.source)}: ${moveText(move, view.mesh)}`),
    ]);
  return [...arriving, ...merged(node.syncs).map((move) => `for its weights: ${moveText(move, view.mesh)}`)];
}

/** One line for all weights of an op that travel alike. */
function merged(moves: LayoutChange[]): LayoutChange[] {
  const found = new Map<string, LayoutChange>();
  for (const move of moves) {
    const key = `${move.axis} ${move.what} ${move.times}`;
    const sent = found.get(key)?.sent_bytes ?? 0;
    found.set(key, { ...move, sent_bytes: sent + move.sent_bytes });
  }
  return [...found.values()];
}

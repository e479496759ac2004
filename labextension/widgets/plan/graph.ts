/** The model: ops coloured by what they are split along, and what is sent between them. */

import { h } from '../lib/dom';
import type { EdgePath, Picture, Placed } from './layout';
import { NODE, arrange, closedAtFirst, moves } from './layout';
import { cut, edgeLines, face, legend, dataTable } from './reading';
import { Section } from './section';
import type { Session } from './session';
import { s } from '../lib/svg';
import type { GraphEdge, View } from './view';
import { flopsText, memoryText } from './format';

export class GraphView {
  readonly #scroll = h('div', { class: 'at-graph-scroll' });
  readonly #legend = h('div', { class: 'at-legend' });
  readonly #tip = h('div', { class: 'at-tip', hidden: true });
  readonly #section: Section;
  readonly root: HTMLElement;
  #drawn: View | undefined;
  #closed = new Set<number>();
  #marks = new Map<string, SVGGElement>();
  #order: Placed[] = [];

  constructor(readonly session: Session) {
    const chart = h('div', { class: 'at-graph-chart' }, this.#scroll, this.#legend, this.#tip);
    const { trans } = session;
    const table = (): HTMLElement => dataTable(session.view, trans);
    this.#section = new Section('graph', trans.__('Model'), chart, table, trans);
    this.root = this.#section.root;
    this.#scroll.addEventListener('keydown', (event) => {
      this.#move(event);
    });
  }

  update(): void {
    const { view } = this.session;
    if (this.#drawn !== view) {
      const same = this.#drawn?.groups.length === view.groups.length;
      if (!same) this.#closed = closedAtFirst(view);
      this.#drawn = view;
      this.#draw();
      this.#section.refresh();
    }
    this.#mark();
  }

  #draw(): void {
    const { view, trans } = this.session;
    const focused = this.#scroll.contains(document.activeElement);
    const place = arrange(view, this.#closed);
    this.#marks = new Map();
    this.#order = [...place.placed].sort((a, b) => a.y - b.y || a.x - b.x);
    const marks = this.#order.map((one) => this.#node(one));
    const svg = s(
      'svg',
      {
        style: `width:100%;max-width:${place.width}px;min-width:${0.85 * place.width}px`,
        viewBox: `0 0 ${place.width} ${place.height}`,
        role: 'group',
        'aria-label': trans.__('Ops of %1; arrow keys move, Enter chooses', view.name),
      },
      arrowhead(),
      ...this.#frames(place),
      ...place.lines.map((line) => this.#line(line)),
      ...marks,
    );
    this.#scroll.replaceChildren(svg);
    this.#legend.replaceChildren(...legend(view, trans));
    const moving = view.edges.filter(moves).length;
    const none = trans.__('no edge moves data');
    const some = trans.__('%1 of %2 edges move data', moving, view.edges.length);
    this.#section.note(moving ? some : none);
    if (focused) this.#marks.get(this.session.op)?.focus();
  }

  #frames(place: Picture): SVGElement[] {
    return place.frames.map((frame) => {
      const group = this.session.view.groups[frame.group];
      const { x, y, width, height } = frame;
      const text = `× ${group?.count ?? 1}`;
      return s(
        'g',
        {},
        s('rect', { class: 'at-frame', x, y, width, height, rx: 8 }),
        s('rect', { class: 'at-count-back', x: x + width - 38, y: y - 8, width: 46, height: 17, rx: 8 }),
        s('text', { class: 'at-count', x: x + width - 15, y: y + 4.5, 'text-anchor': 'middle' }, text),
      );
    });
  }

  #node(one: Placed): SVGGElement {
    const first = one.nodes[0];
    if (!first) return s('g');
    const { view, trans } = this.session;
    const { name, below, flags, colours, spoken } = face(one, first, view, trans);
    const mark = s(
      'g',
      {
        class: `at-node${one.closed ? ' at-closed' : ''}`,
        'data-colour': colours.at(-1),
        transform: `translate(${one.x} ${one.y})`,
        role: 'button',
        tabindex: -1,
        'aria-label': spoken,
        onclick: () => {
          this.#choose(one);
        },
      },
      s(
        'title',
        {},
        one.closed ? name : [`${first.op}: ${first.kind}`, flopsText(first.flops)].filter(Boolean).join(', '),
      ),
      s('rect', { width: NODE.width, height: NODE.height, rx: 5 }),
      ...stripe(colours),
      s('text', { x: 13, y: 14 }, cut(name)),
      s('text', { class: 'at-sub', x: 13, y: 27 }, cut(below)),
      s('text', { class: 'at-sub', x: NODE.width - 6, y: 14, 'text-anchor': 'end' }, flags),
    );
    for (const node of one.nodes) this.#marks.set(node.op, mark);
    return mark;
  }

  #line(line: EdgePath): SVGElement {
    const sent = line.edges.flatMap((edge) => [...edge.forward, ...edge.backward]);
    const path = pathOf(line);
    const total = sent.reduce((sum, move) => sum + move.sent_bytes * move.times, 0);
    const show = (event: Event): void => {
      this.#tell(line.edges, event as MouseEvent);
    };
    const hide = (): void => {
      this.#tip.hidden = true;
    };
    return s(
      'g',
      {
        class: `at-edge${sent.length > 0 ? ' at-moving' : ''}${line.repeats ? ' at-back' : ''}`,
        onmousemove: show,
        onmouseleave: hide,
      },
      s('path', { class: 'at-wire', d: path, 'marker-end': 'url(#at-arrow)' }),
      s('path', { class: 'at-touch', d: path }),
      ...(sent.length > 0 ? [s('text', { x: line.label.x, y: line.label.y + 4 }, memoryText(total))] : []),
    );
  }

  #tell(edges: GraphEdge[], event: MouseEvent): void {
    const { view, trans } = this.session;
    const lines = edges.flatMap((edge) => edgeLines(edge, view, trans));
    this.#tip.replaceChildren(
      ...lines.map((line, i) => h('p', { class: i === 0 ? 'at-tip-head' : undefined }, line)),
    );
    this.#tip.hidden = false;
    const host = this.#scroll.parentElement?.getBoundingClientRect();
    if (!host) return;
    this.#tip.style.top = `${event.clientY - host.top + 14}px`;
    this.#tip.style.left = `${Math.min(event.clientX - host.left + 12, Math.max(host.width - 250, 0))}px`;
  }

  #choose(one: Placed): void {
    const first = one.nodes[0];
    if (!first) return;
    if (one.closed) {
      this.#closed.delete(one.group);
      this.#draw();
    }
    this.session.choose(first);
    this.#marks.get(first.op)?.focus({ preventScroll: !one.closed });
  }

  #mark(): void {
    const { op, view } = this.session;
    const chosen = this.#marks.get(op) ?? this.#marks.get(view.nodes[0]?.op ?? '');
    for (const mark of new Set(this.#marks.values())) {
      mark.setAttribute('aria-pressed', String(mark === this.#marks.get(op)));
      mark.setAttribute('tabindex', mark === chosen ? '0' : '-1');
    }
  }

  #move(event: KeyboardEvent): void {
    const marks = this.#order.map((one) => this.#marks.get(one.nodes[0]?.op ?? ''));
    const at = marks.findIndex((mark) => mark === document.activeElement);
    const one = this.#order[at];
    if (!one) return;
    if (event.key === 'Enter' || event.key === ' ') this.#choose(one);
    else {
      const to = next(event.key, at, marks.length);
      if (to === undefined) return;
      marks[to]?.focus();
      marks[to]?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    }
    event.preventDefault();
    event.stopPropagation();
  }
}

function next(key: string, at: number, length: number): number | undefined {
  if (key === 'ArrowDown' || key === 'ArrowRight') return Math.min(at + 1, length - 1);
  if (key === 'ArrowUp' || key === 'ArrowLeft') return Math.max(at - 1, 0);
  if (key === 'Home') return 0;
  return key === 'End' ? length - 1 : undefined;
}

/** A bar at a node's left side with all its colours. */
function stripe(colours: string[]): SVGElement[] {
  const height = NODE.height / colours.length;
  return colours.map((colour, i) =>
    s('rect', { class: 'at-stripe', 'data-colour': colour, y: i * height, width: 6, height }),
  );
}

function arrowhead(): SVGElement {
  const shape = s('path', { d: 'M0 0 8 4 0 8z', fill: 'context-stroke' });
  const box = { viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: 'auto' };
  return s('defs', {}, s('marker', { id: 'at-arrow', ...box }, shape));
}

function pathOf(line: EdgePath): string {
  const [first, ...rest] = line.points;
  if (!first) return '';
  const start = `M${first.x.toFixed(1)} ${first.y.toFixed(1)}`;
  if (line.repeats || rest.length < 2)
    return start + rest.map(({ x, y }) => `L${x.toFixed(1)} ${y.toFixed(1)}`).join('');
  // Through the middles of the way, so that bends are round.
  const bends = rest.slice(0, -1).map((point, i) => {
    const after = rest[i + 1] ?? point;
    const last = i === rest.length - 2;
    const [x, y] = last ? [after.x, after.y] : [(point.x + after.x) / 2, (point.y + after.y) / 2];
    return `Q${point.x.toFixed(1)} ${point.y.toFixed(1)} ${x.toFixed(1)} ${y.toFixed(1)}`;
  });
  return start + bends.join('');
}

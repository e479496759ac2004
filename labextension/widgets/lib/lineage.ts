/** Which trial went on from which one's checkpoint, as a tree; hidden where none did. */

import { h, setText } from './dom';
import { number } from './format';
import type { Trial } from './frames';
import type { Session } from './session';
import { s } from './svg';
import { colorOf } from './theme';

const [CELL_WIDTH, ROW, CHARACTER, MARGIN] = [112, 24, 6.5, 12];
const MOST = 500;

/** A trial with its place: its generation from the left, and its row. */
export interface Placed {
  trial: Trial;
  generation: number;
  row: number;
  from: Placed | undefined;
}

/** The trials that have gone on from another, and those that others went on from; each first child stays in its row. */
export function placed(trials: Iterable<Trial>): Placed[] {
  const all = new Map([...trials].map((trial) => [trial.number, trial]));
  const children = new Map<number, Trial[]>();
  for (const trial of all.values()) {
    if (trial.parent === null || !all.has(trial.parent)) continue;
    children.set(trial.parent, [...(children.get(trial.parent) ?? []), trial]);
  }
  const found: Placed[] = [];
  let row = -1;
  const put = (trial: Trial, from: Placed | undefined): void => {
    const own = { trial, generation: from ? from.generation + 1 : 0, row, from };
    found.push(own);
    (children.get(trial.number) ?? []).forEach((child, i) => {
      if (i > 0) row += 1;
      put(child, own);
    });
  };
  for (const trial of all.values()) {
    const isRoot = trial.parent === null || !all.has(trial.parent);
    if (!isRoot || !children.has(trial.number)) continue;
    row += 1;
    put(trial, undefined);
  }
  return found;
}

export class Lineage {
  readonly #title = h('summary');
  readonly #body = h('div', { class: 'at-lineage' });
  readonly root = h('details', { class: 'at-details', open: true, hidden: true }, this.#title, this.#body);
  #shown = '';

  constructor(readonly session: Session) {
    this.root.addEventListener('toggle', () => {
      this.update();
    });
  }

  update(): void {
    const { choices, trans, trials } = this.session;
    this.root.hidden = ![...trials.values()].some(({ parent }) => parent !== null);
    if (this.root.hidden || !this.root.open) return;
    const all = placed(trials.values());
    const nodes = all.slice(0, MOST);
    const of = trans.__('the first %1 of %2', nodes.length, all.length);
    setText(this.#title, all.length > MOST ? `${trans.__('Lineage')}, ${of}` : trans.__('Lineage'));
    const shown = JSON.stringify([
      nodes.map(({ trial, row }) => [trial.number, row, trial.value]),
      choices.trial,
      this.session.best()?.number,
    ]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#body.replaceChildren(this.#drawing(nodes));
  }

  #drawing(nodes: Placed[]): SVGElement {
    const width = MARGIN + CELL_WIDTH * (Math.max(...nodes.map(({ generation }) => generation)) + 1);
    const height = MARGIN + ROW * (Math.max(...nodes.map(({ row }) => row)) + 1);
    const edges = nodes.flatMap((node) => (node.from ? edge(node, node.from, this.#text(node.from.trial)) : []));
    const label = this.session.trans.__('Lineage of trials');
    const size = { width, height, viewBox: `0 0 ${width} ${height}` };
    return s('svg', { ...size, role: 'group', 'aria-label': label }, ...edges, ...nodes.map((node) => this.#node(node)));
  }

  #node(node: Placed): SVGElement {
    const { trial, from } = node;
    const { choices, trans } = this.session;
    const [x, y] = at(node);
    const name = from
      ? trans.__('Trial %1, from trial %2', trial.number, from.trial.number)
      : trans.__('Trial %1', trial.number);
    const onclick = (): void => {
      this.session.choose({ trial: trial.number });
    };
    const attributes = { class: 'at-node', 'data-trial': trial.number, onclick };
    return s(
      'g',
      { ...attributes, 'data-chosen': choices.trial === trial.number ? '' : undefined },
      s('title', {}, name),
      s('circle', { cx: x, cy: y, r: 5, fill: colorOf(trial.number) }),
      s('text', { x: x + 9, y: y + 4 }, this.#text(trial)),
    );
  }

  #text({ number: of, value }: Trial): string {
    const star = of === this.session.best()?.number ? ' ★' : '';
    return `${of}${star}  ${value === null ? '' : number(value)}`;
  }
}

function at({ generation, row }: Placed): [number, number] {
  return [MARGIN + generation * CELL_WIDTH, MARGIN + row * ROW];
}

/** The line from the text of a trial to one that went on from it. */
function edge(node: Placed, from: Placed, text: string): SVGElement {
  const [x, y] = at(node);
  const [left, top] = at(from);
  const begin = Math.min(left + 14 + CHARACTER * text.length, x - 22);
  return s('path', { class: 'at-edge', d: `M${begin} ${top}C${x - 14} ${top} ${x - 22} ${y} ${x - 8} ${y}` });
}

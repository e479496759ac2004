/** The devices of a stage, and who holds which slice of a tensor. */

import { h, setText } from '../lib/dom';
import type { Translator } from '../lib/translator';
import { Section, table } from './section';
import type { Session } from './session';
import type { Slice } from './slices';
import { hueOf, rangeText, sliceOf, slices } from './slices';
import { meshText } from './texts';
import type { GraphNode, Mesh, Tensor, View } from './view';

const MOST_DEVICES = 64;
const MOST_COLUMNS = 16;
const MOST_NAMED = 8;

export class MeshView {
  readonly #grid = h('div', { class: 'at-mesh-grid', role: 'grid' });
  readonly #stages: HTMLSelectElement;
  readonly #reading = h('p', { class: 'at-reading' });
  readonly #section: Section;
  readonly root: HTMLElement;
  #drawn: View | undefined;
  #cells: HTMLElement[] = [];
  #device = 0;
  /** Whether the pointer or the focus is on a device. */
  #over = false;

  constructor(readonly session: Session) {
    const { trans } = session;
    this.#stages = h('select', { class: 'at-select', 'aria-label': trans.__('Stage') });
    const chart = h('div', {}, this.#stages, this.#grid, this.#reading);
    const table = (): HTMLElement => this.#dataTable();
    this.#section = new Section('mesh', trans.__('Devices'), chart, table, trans);
    this.root = this.#section.root;
    this.#stages.addEventListener('change', () => {
      session.chooseStage(Number(this.#stages.value));
    });
    for (const leaving of ['mouseleave', 'focusout']) {
      this.#grid.addEventListener(leaving, () => {
        this.#over = false;
        this.#paint(session.view.mesh);
      });
    }
    this.#grid.addEventListener('keydown', (event) => {
      this.#move(event);
    });
  }

  update(): void {
    const { view } = this.session;
    if (this.#drawn !== view) {
      this.#drawn = view;
      this.#draw(view);
    }
    this.#stages.value = String(this.session.stage);
    this.#paint(view.mesh);
    this.#section.refresh();
  }

  #draw(view: View): void {
    const { mesh } = view;
    const { trans } = this.session;
    const size = devicesOf(mesh);
    const shown = Math.min(size, MOST_DEVICES);
    const columns = columnsOf(mesh, shown);
    this.#device = Math.min(this.#device, shown - 1);
    this.#cells = Array.from({ length: shown }, (_, place) => this.#cell(place));
    const rows: HTMLElement[] = [];
    for (let at = 0; at < shown; at += columns) {
      rows.push(h('div', { role: 'row' }, ...this.#cells.slice(at, at + columns)));
    }
    this.#grid.replaceChildren(...rows);
    this.#grid.style.setProperty('--at-columns', String(columns));
    this.#grid.setAttribute('aria-label', trans.__('Devices of a stage by %1', mesh.axes.join(' × ')));
    this.#stages.hidden = mesh.stages < 2;
    const names = view.ranks.map(({ stage, blocks, device }) =>
      trans._n('stage %2: %1 block on %3', 'stage %2: %1 blocks on %3', blocks, stage, device),
    );
    this.#stages.replaceChildren(...names.map((name, i) => h('option', { value: i }, name)));
    this.#section.note(noteOf(mesh, shown, trans));
  }

  #cell(place: number): HTMLElement {
    const enter = (): void => {
      this.#look(place);
    };
    const label = h('b', {});
    const part = h('span', {});
    return h(
      'div',
      { class: 'at-device', role: 'gridcell', tabindex: -1, onmouseenter: enter, onfocus: enter },
      label,
      part,
    );
  }

  #paint(mesh: Mesh): void {
    const tensor = this.session.shownTensor();
    const total = tensor ? slices(tensor) : 1;
    const first = this.session.stage * devicesOf(mesh);
    this.#cells.forEach((cell, place) => {
      const slice = tensor && sliceOf(tensor, place, mesh);
      cell.style.setProperty('--at-hue', String(hueOf(slice?.index ?? 0, total)));
      cell.toggleAttribute('data-whole', total === 1);
      cell.setAttribute('tabindex', place === this.#device ? '0' : '-1');
      this.#label(cell, first + place, tensor, slice);
    });
    if (this.#over) this.#look(this.#device);
    else setText(this.#reading, this.#read(tensor));
  }

  #label(cell: HTMLElement, device: number, tensor: Tensor | undefined, slice: Slice | undefined): void {
    const { trans } = this.session;
    const [label, part] = [cell.children[0], cell.children[1]];
    if (label) label.textContent = String(device);
    if (part) part.textContent = tensor && slice ? short(tensor, slice) || trans.__('all') : '';
    const holds = tensor && slice ? trans.__('Device %1 holds %2', device, held(tensor, slice)) : '';
    cell.setAttribute('aria-label', holds || trans.__('Device %1', device));
  }

  #read(tensor: Tensor | undefined): string {
    const { view, trans } = this.session;
    if (!tensor) return trans.__('Choose an op to see who holds what of its tensors.');
    const rest = atRest(tensor, this.session.node(), trans);
    return [reading(tensor, view.mesh, trans), rest].filter(Boolean).join(' ');
  }

  #look(place: number): void {
    this.#device = place;
    this.#over = true;
    const tensor = this.session.shownTensor();
    if (!tensor) return;
    const { trans, view } = this.session;
    const { mesh } = view;
    const mine = sliceOf(tensor, place, mesh);
    const same = this.#cells.map((_, other) => sliceOf(tensor, other, mesh).index === mine.index);
    this.#cells.forEach((cell, other) => cell.toggleAttribute('data-same', same[other] === true));
    const first = this.session.stage * devicesOf(mesh);
    const others = same.flatMap((is, other) => (is && other !== place ? [first + other] : []));
    const [device, slice] = [first + place, held(tensor, mine)];
    const alone = trans.__('Device %1 holds %2, and is the only one here.', device, slice);
    const alike = trans.__('Device %1 holds %2, as %3 do.', device, slice, some(others, trans));
    setText(this.#reading, others.length > 0 ? alike : alone);
  }

  #move(event: KeyboardEvent): void {
    const columns = columnsOf(this.session.view.mesh, this.#cells.length);
    const steps: Record<string, number> = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: columns,
      ArrowUp: -columns,
    };
    const step = steps[event.key];
    const to = this.#cells[this.#device + (step ?? 0)];
    if (step === undefined || !to) return;
    event.preventDefault();
    event.stopPropagation();
    this.#cells[this.#device]?.setAttribute('tabindex', '-1');
    to.setAttribute('tabindex', '0');
    to.focus();
  }

  #dataTable(): HTMLElement {
    const { trans, view } = this.session;
    const { mesh } = view;
    const tensor = this.session.shownTensor();
    const first = this.session.stage * devicesOf(mesh);
    const rows = this.#cells.map((_, place) => [
      String(first + place),
      tensor ? held(tensor, sliceOf(tensor, place, mesh)) : '',
    ]);
    const caption = tensor ? reading(tensor, mesh, trans) : trans.__('No tensor is chosen');
    return table(caption, [trans.__('device'), trans.__('holds')], rows);
  }
}

export function devicesOf(mesh: Mesh): number {
  return mesh.shape.reduce((product, size) => product * size, 1);
}

/** One row per coordinate of the outer axes, as far as the last axis is neither tiny nor huge. */
function columnsOf(mesh: Mesh, shown: number): number {
  let columns = 1;
  for (const size of [...mesh.shape].reverse()) {
    if (columns * size > MOST_COLUMNS) break;
    columns *= size;
    if (columns >= 4) break;
  }
  return Math.min(columns > 1 ? columns : 8, Math.max(shown, 1));
}

function noteOf(mesh: Mesh, shown: number, trans: Translator): string {
  const size = devicesOf(mesh);
  const found = [meshText({ ...mesh, stages: 1 }, trans)];
  if (mesh.stages > 1) found.push(trans.__('one stage of %1', mesh.stages));
  if (shown < size) found.push(trans.__('first %1 of %2 devices', shown, size));
  return found.join(', ');
}

/** `layer.weight[0:512, :]` */
function held(tensor: Tensor, slice: Slice): string {
  return tensor.name + rangeText(tensor, slice);
}

/** The ranges held where they are short enough to read in a cell, else which part of how many; empty of all of it. */
function short(tensor: Tensor, slice: Slice): string {
  const split = [...new Set(tensor.splits.map((one) => one.dim))];
  const texts = split.map((dim) => {
    const [low, high] = slice.ranges[dim] ?? [0, 1];
    const parts = tensor.splits
      .filter((one) => one.dim === dim)
      .reduce((product, one) => product * one.parts, 1);
    const part = Math.round((low * parts) / Math.max(tensor.shape[dim] ?? 1, 1)) + 1;
    return high > 999 || split.length > 1 ? `${part}/${parts}` : `${low}:${high}`;
  });
  return texts.join(' · ');
}

function reading(tensor: Tensor, mesh: Mesh, trans: Translator): string {
  const found = [spread(tensor, mesh, trans)];
  if (tensor.placements.includes('P')) found.push(trans.__('Values are partial sums, added up later.'));
  return found.join(' ');
}

function spread(tensor: Tensor, mesh: Mesh, trans: Translator): string {
  const total = slices(tensor);
  const copies = devicesOf(mesh) / total;
  const name = `${tensor.name} [${tensor.shape.join(', ')}]`;
  if (total === 1) return trans.__('%1: every device holds all of it.', name);
  const dims = [...new Set(tensor.splits.map((one) => one.dim))].join(', ');
  return trans._n(
    '%2: %3 slices along dim %4, each held by one device.',
    '%2: %3 slices along dim %4, each held by %1 devices.',
    copies,
    name,
    total,
    dims,
  );
}

/** The grid shows a parameter as it is used; between uses ZeRO keeps less of it. */
function atRest(tensor: Tensor, node: GraphNode | undefined, trans: Translator): string {
  if (tensor.kind !== 'parameter' || !node) return '';
  const texts = [
    '',
    trans.__('Its optimizer states are sharded over the copies (ZeRO 1).'),
    trans.__('Its optimizer states and gradients are sharded over the copies (ZeRO 2).'),
    trans.__('Between uses it is sharded over the copies (ZeRO 3).'),
  ];
  return texts[node.zero] ?? '';
}

function some(devices: number[], trans: Translator): string {
  const shown = devices.slice(0, MOST_NAMED).join(', ');
  const more = devices.length - MOST_NAMED;
  return more > 0 ? trans.__('%1 and %2 more', shown, more) : shown;
}

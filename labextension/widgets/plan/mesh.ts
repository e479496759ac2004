/** The devices of a stage, and who holds which slice of a tensor. */

import { h, setText } from '../lib/dom';
import { Section, table } from './section';
import type { Session } from './session';
import type { Slice } from './slices';
import { hueOf, rangeText, sliceOf, slices } from './slices';
import type { GraphNode, Mesh, Tensor, View } from './view';

const MOST_DEVICES = 64;
const MOST_COLUMNS = 16;

export class MeshView {
  readonly #grid = h('div', { class: 'at-mesh-grid', role: 'grid' });
  readonly #stages = h('select', { class: 'at-select', 'aria-label': 'Stage' });
  readonly #reading = h('p', { class: 'at-reading' });
  readonly #section: Section;
  readonly root: HTMLElement;
  #drawn: View | undefined;
  #cells: HTMLElement[] = [];
  #device = 0;
  /** Whether the pointer or the focus is on a device. */
  #over = false;

  constructor(readonly session: Session) {
    const chart = h('div', {}, this.#stages, this.#grid, this.#reading);
    this.#section = new Section('mesh', 'Devices', chart, () => this.#dataTable());
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
    this.#grid.setAttribute('aria-label', `Devices of a stage by ${mesh.axes.join(' and ')}`);
    this.#stages.hidden = mesh.stages < 2;
    const names = view.ranks.map((rank) => `stage ${rank.stage}: ${rank.blocks} blocks on ${rank.device}`);
    this.#stages.replaceChildren(...names.map((name, i) => h('option', { value: i }, name)));
    this.#section.note(noteOf(mesh, shown));
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
      const [label, part] = [cell.children[0], cell.children[1]];
      const slice = tensor && sliceOf(tensor, place, mesh);
      if (label) label.textContent = String(first + place);
      if (part) part.textContent = tensor && slice ? short(tensor, slice) : '';
      cell.style.setProperty('--at-hue', String(hueOf(slice?.index ?? 0, total)));
      cell.toggleAttribute('data-whole', total === 1);
      cell.setAttribute('tabindex', place === this.#device ? '0' : '-1');
      const held = tensor && slice ? `, holds ${tensor.name}${rangeText(tensor, slice)}` : '';
      cell.setAttribute('aria-label', `Device ${first + place}${held}`);
    });
    if (this.#over) this.#look(this.#device);
    else
      setText(
        this.#reading,
        tensor
          ? reading(tensor, mesh) + atRest(tensor, this.session.node())
          : 'Choose an op to see who holds what of its tensors.',
      );
  }

  #look(place: number): void {
    this.#device = place;
    this.#over = true;
    const tensor = this.session.shownTensor();
    if (!tensor) return;
    const { mesh } = this.session.view;
    const mine = sliceOf(tensor, place, mesh);
    const same = this.#cells.map((_, other) => sliceOf(tensor, other, mesh).index === mine.index);
    this.#cells.forEach((cell, other) => cell.toggleAttribute('data-same', same[other] === true));
    const first = this.session.stage * devicesOf(mesh);
    const others = same.flatMap((is, other) => (is && other !== place ? [first + other] : []));
    const shared = others.length > 0 ? `, as ${some(others)} do` : ', and is the only one here';
    setText(
      this.#reading,
      `Device ${first + place} holds ${tensor.name}${rangeText(tensor, mine)}${shared}.`,
    );
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
    const { mesh } = this.session.view;
    const tensor = this.session.shownTensor();
    const first = this.session.stage * devicesOf(mesh);
    const rows = this.#cells.map((_, place) => [
      String(first + place),
      tensor ? `${tensor.name}${rangeText(tensor, sliceOf(tensor, place, mesh))}` : '',
    ]);
    return table(tensor ? reading(tensor, mesh) : 'No tensor is chosen', ['device', 'holds'], rows);
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

function noteOf(mesh: Mesh, shown: number): string {
  const size = devicesOf(mesh);
  const axes = mesh.axes.map((axis, i) => `${axis} ${mesh.shape[i] ?? 1}`).join(' × ');
  const stage = mesh.stages > 1 ? `, one stage of ${mesh.stages}` : '';
  const sample = shown < size ? `, first ${shown} of ${size} devices` : '';
  return `${axes || 'one device'}${stage}${sample}`;
}

/** The ranges held where they are short enough to read in a cell, else which part of how many. */
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
  return texts.join(' · ') || 'all';
}

function reading(tensor: Tensor, mesh: Mesh): string {
  const total = slices(tensor);
  const size = devicesOf(mesh);
  const name = `${tensor.name} [${tensor.shape.join(', ')}]`;
  const partial = tensor.placements.includes('P') ? ' Values are partial sums, added up later.' : '';
  if (total === 1) return `${name}: every device holds all of it.${partial}`;
  const dims = [...new Set(tensor.splits.map((one) => one.dim))].join(' and ');
  const copies = size > total ? `each held by ${size / total} devices` : 'each held by one device';
  return `${name}: ${total} slices along dim ${dims}, ${copies}.${partial}`;
}

/** The grid shows a parameter as it is used; between uses ZeRO keeps less of it. */
function atRest(tensor: Tensor, node: GraphNode | undefined): string {
  if (tensor.kind !== 'parameter' || !node?.zero) return '';
  const what = [
    '',
    'Its optimizer states are',
    'Its optimizer states and gradients are',
    'Between uses it is',
  ][node.zero];
  return ` ${what ?? ''} shared out among the copies (ZeRO ${node.zero}).`;
}

function some(devices: number[]): string {
  const shown = devices.slice(0, 8).join(', ');
  return devices.length > 8 ? `${shown} and ${devices.length - 8} more` : shown;
}

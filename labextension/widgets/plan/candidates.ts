/** The plan beside well-known ones and the best others: time, bytes sent, memory, and why some do not fit. */

import { h, setText } from '../lib/dom';
import type { Session } from './session';
import type { Candidate, Cost, View } from './view';
import { bytes, memoryText, percent, seconds } from './format';

const PARTS: [keyof Cost, string][] = [
  ['compute_s', 'forward'],
  ['communication_s', 'communication'],
  ['bubble_s', 'bubble'],
  ['optimizer_s', 'optimizer'],
];
const KINDS: Record<string, string> = {
  found: 'found',
  before: 'before',
  data: 'data',
  model: 'model',
  hybrid: 'hybrid',
  other: 'next best',
};

export class Candidates {
  readonly #body = h('div', {
    class: 'at-scroll',
    tabindex: 0,
    role: 'region',
    'aria-label': 'Plans side by side',
  });
  readonly #note = h('span', { class: 'at-soft at-note' });
  readonly root: HTMLElement;
  #drawn: View | undefined;

  constructor(readonly session: Session) {
    const head = h(
      'div',
      { class: 'at-section-head' },
      h('h4', { class: 'at-title' }, 'Plans side by side'),
      this.#note,
    );
    this.root = h('section', { class: 'at-section at-candidates' }, head, this.#body);
  }

  update(): void {
    const { view, base } = this.session;
    if (this.#drawn === view) return;
    this.#drawn = view;
    const rows = rowsOf(view, base);
    const slowest = Math.max(...rows.map((row) => row.step_s ?? 0), 1e-12);
    const found = view.cost.step_s;
    const heads = ['plan', 'kind', 'mesh', 'step', 'parts', 'against found', 'memory', 'sent'];
    const right = new Set([3, 5, 6, 7]);
    this.#body.replaceChildren(
      h(
        'table',
        { class: 'at-table' },
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            ...heads.map((head, i) => h('th', { scope: 'col', class: right.has(i) && 'at-right' }, head)),
          ),
        ),
        h('tbody', {}, ...rows.map((row) => line(row, found, slowest))),
      ),
    );
    setText(
      this.#note,
      view === base ? verdict(view) : 'well-known plans are weighed by the full search, not while sliding',
    );
  }
}

/** After planning again, the first plan of the page stands below the new one. */
function rowsOf(view: View, base: View): Candidate[] {
  const [found, ...rest] = view.candidates;
  if (!found) return [];
  const before = base.candidates[0];
  const between =
    view !== base && before ? [{ ...before, name: `on ${base.cluster.name}`, kind: 'before' }] : [];
  // A well-known plan may be found again among the next best.
  const known = new Set<string>();
  const distinct = rest.filter((row) => {
    const key = row.step_s === null ? row.name : `${row.what} ${row.step_s.toPrecision(6)}`;
    return !known.has(key) && known.add(key);
  });
  return [found, ...between, ...distinct];
}

function line(row: Candidate, found: number, slowest: number): HTMLElement {
  const name = row.kind === 'found' ? 'found plan' : row.kind === 'other' ? 'another mesh' : row.name;
  const head = [
    h('th', { scope: 'row' }, name),
    h('td', {}, h('span', { class: 'at-kind', 'data-kind': row.kind }, KINDS[row.kind] ?? row.kind)),
  ];
  if (row.step_s === null) {
    const reason = row.reason || 'does not fit';
    return h(
      'tr',
      { 'data-refused': true },
      ...head,
      h('td', { colspan: 6, class: 'at-refused', title: reason }, `✕ ${reason}`),
    );
  }
  const parts = PARTS.map(([key, what]) => {
    const share = ((row[key] ?? 0) / slowest) * 100;
    return h('i', { 'data-what': what, style: `width:${share.toFixed(2)}%` });
  });
  const spoken = `compute ${seconds(row.compute_s ?? 0)}, communication ${seconds(row.communication_s ?? 0)}`;
  return h(
    'tr',
    { 'data-found': row.kind === 'found' },
    ...head,
    h('td', { class: 'at-what', title: row.what }, row.what),
    h('td', { class: 'at-right' }, h('b', {}, seconds(row.step_s))),
    h('td', { class: 'at-bars' }, h('span', { role: 'img', 'aria-label': spoken }, ...parts)),
    h('td', { class: 'at-right' }, against(row.step_s, found)),
    h('td', { class: 'at-right' }, memoryText(row.peak_memory_bytes ?? 0), row.fits ? '' : ' ✕'),
    h('td', { class: 'at-right' }, row.sent_bytes === null ? '' : bytes(row.sent_bytes)),
  );
}

function against(step: number, found: number): string {
  const ratio = step / found;
  if (Math.abs(ratio - 1) < 5e-4) return '=';
  return ratio < 1.995
    ? `${ratio > 1 ? '+' : '−'}${percent(Math.abs(ratio - 1))}`
    : `${Number(ratio.toPrecision(2))} ×`;
}

function verdict(view: View): string {
  const best = view.candidates
    .filter((row) => row.kind !== 'found' && row.kind !== 'other' && row.step_s !== null && row.fits)
    .sort((a, b) => (a.step_s ?? 0) - (b.step_s ?? 0))[0];
  if (!best?.step_s) return '';
  const gain = 1 - view.cost.step_s / best.step_s;
  return gain < 5e-4
    ? `as fast as ${best.name}`
    : `${percent(gain)} less time than ${best.name}, the best well-known plan`;
}

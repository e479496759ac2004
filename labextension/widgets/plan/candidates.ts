/** The plan beside well-known ones and the best others: time, bytes sent, memory, and why some do not fit. */

import { h, setText } from '../lib/dom';
import type { Translator } from '../lib/translator';
import type { Session } from './session';
import type { Candidate, Cost, View } from './view';
import { memoryText, percent, seconds } from './format';

/** Which colour each part of a step has. */
const PARTS: [keyof Cost, string][] = [
  ['compute_s', 'forward'],
  ['communication_s', 'communication'],
  ['bubble_s', 'bubble'],
  ['optimizer_s', 'optimizer'],
];
const NUMBERS = new Set([3, 5, 6, 7]);

export class Candidates {
  readonly #body: HTMLElement;
  readonly #note = h('span', { class: 'at-soft at-note' });
  readonly root: HTMLElement;
  #drawn: View | undefined;

  constructor(readonly session: Session) {
    const title = session.trans.__('Plans side by side');
    this.#body = h('div', { class: 'at-scroll', tabindex: 0, role: 'region', 'aria-label': title });
    const head = h('div', { class: 'at-section-head' }, h('h4', { class: 'at-title' }, title), this.#note);
    this.root = h('section', { class: 'at-section at-candidates' }, head, this.#body);
  }

  update(): void {
    const { view, base, trans } = this.session;
    if (this.#drawn === view) return;
    this.#drawn = view;
    const rows = rowsOf(view, base, trans);
    const slowest = Math.max(...rows.map((row) => row.step_s ?? 0), 1e-12);
    const cells = headsOf(trans).map((text, i) =>
      h('th', { scope: 'col', class: NUMBERS.has(i) && 'at-right' }, text),
    );
    const lines = rows.map((row) => line(row, view.cost.step_s, slowest, trans));
    const head = h('thead', {}, h('tr', {}, ...cells));
    this.#body.replaceChildren(h('table', { class: 'at-table' }, head, h('tbody', {}, ...lines)));
    const sliding = trans.__('well-known plans are compared in the full search only');
    setText(this.#note, view === base ? verdict(view, trans) : sliding);
  }
}

function headsOf(trans: Translator): string[] {
  return [
    trans.__('plan'),
    trans.__('kind'),
    trans.__('split'),
    trans.__('step'),
    trans.__('parts'),
    trans.__('against found'),
    trans.__('memory'),
    trans.__('sent'),
  ];
}

function kindWords(trans: Translator): Record<string, string> {
  return {
    found: trans.__('found'),
    before: trans.__('before'),
    fastest: trans.__('fastest'),
    data: trans.__('data'),
    model: trans.__('model'),
    hybrid: trans.__('hybrid'),
    other: trans.__('next best'),
  };
}

/** After planning again, the first plan of the page stands below the new one. */
function rowsOf(view: View, base: View, trans: Translator): Candidate[] {
  const [found, ...rest] = view.candidates;
  if (!found) return [];
  const before = base.candidates[0];
  const between =
    view !== base && before
      ? [{ ...before, name: trans.__('on %1', base.cluster.name), kind: 'before' }]
      : [];
  // A well-known plan may be found again among the next best.
  const known = new Set<string>();
  const distinct = rest.filter((row) => {
    const key = row.step_s === null ? row.name : `${row.what} ${row.step_s.toPrecision(6)}`;
    return !known.has(key) && known.add(key);
  });
  return [found, ...between, ...distinct];
}

function nameOf(row: Candidate, trans: Translator): string {
  if (row.kind === 'found') return trans.__('found plan');
  if (row.kind === 'fastest') return trans.__('fastest plan');
  return row.kind === 'other' ? trans.__('another mesh') : row.name;
}

function line(row: Candidate, found: number, slowest: number, trans: Translator): HTMLElement {
  const head = [
    h('th', { scope: 'row' }, nameOf(row, trans)),
    h(
      'td',
      {},
      h('span', { class: 'at-kind', 'data-kind': row.kind }, kindWords(trans)[row.kind] ?? row.kind),
    ),
  ];
  if (row.step_s === null) {
    const reason = row.reason || trans.__('does not fit');
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
  const spoken = trans.__(
    'compute %1, communication %2',
    seconds(row.compute_s ?? 0),
    seconds(row.communication_s ?? 0),
  );
  return h(
    'tr',
    { 'data-found': row.kind === 'found' },
    ...head,
    h('td', { class: 'at-what', title: row.what }, row.what),
    h('td', { class: 'at-right' }, h('b', {}, seconds(row.step_s))),
    h('td', { class: 'at-bars' }, h('span', { role: 'img', 'aria-label': spoken }, ...parts)),
    h('td', { class: 'at-right' }, against(row.step_s, found)),
    h('td', { class: 'at-right' }, memoryText(row.peak_memory_bytes ?? 0), row.fits ? '' : ' ✕'),
    h('td', { class: 'at-right' }, row.sent_bytes === null ? '' : memoryText(row.sent_bytes)),
  );
}

function against(step: number, found: number): string {
  const ratio = step / found;
  if (Math.abs(ratio - 1) < 5e-4) return '=';
  return ratio < 1.995
    ? `${ratio > 1 ? '+' : '−'}${percent(Math.abs(ratio - 1))}`
    : `${Number(ratio.toPrecision(2))} ×`;
}

function verdict(view: View, trans: Translator): string {
  const best = view.candidates
    .filter((row) => row.kind !== 'found' && row.kind !== 'other' && row.step_s !== null && row.fits)
    .sort((a, b) => (a.step_s ?? 0) - (b.step_s ?? 0))[0];
  if (!best?.step_s) return '';
  const gain = 1 - view.cost.step_s / best.step_s;
  return gain < 5e-4
    ? trans.__('as fast as %1', best.name)
    : trans.__('%1 less time than %2, the best well-known plan', percent(gain), best.name);
}

/** What was captured beside the cell, and what a trial does not have as the notebook had it. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { h } from '../../widgets/lib/dom';
import type { CapturedName } from '../api/runs';

const UNITS = ['B', 'kB', 'MB', 'GB'];

/** What a trial has differently; nothing where there is no difference. */
export function differenceList(differences: string[], trans: TranslationBundle): HTMLElement[] {
  if (differences.length === 0) return [];
  const title = trans.__('What differs from the notebook');
  return [h('section', {}, h('h4', {}, title), h('ul', {}, ...differences.map((text) => h('li', {}, text))))];
}

/** A row for each name that was captured; nothing where the cell needs none. */
export function captureTable(captured: CapturedName[], trans: TranslationBundle): HTMLElement[] {
  if (captured.length === 0) return [];
  const heads = [trans.__('Name'), trans.__('How'), trans.__('From'), trans.__('Size'), trans.__('Note')];
  const rows = captured.map(({ name, how, origin, size_bytes, stale }) =>
    h(
      'tr',
      {},
      h('th', { scope: 'row' }, name),
      ...[how, origin, size_bytes > 0 ? bytesText(size_bytes) : '', stale].map((text) => h('td', {}, text)),
    ),
  );
  const table = h(
    'table',
    { class: 'jp-AutotrainCode-names' },
    h('thead', {}, h('tr', {}, ...heads.map((head) => h('th', { scope: 'col' }, head)))),
    h('tbody', {}, ...rows),
  );
  const title = trans.__('What was captured');
  const scroll = h('div', {
    class: 'jp-AutotrainCode-scroll',
    tabindex: 0,
    role: 'region',
    'aria-label': title,
  });
  scroll.append(table);
  return [h('section', {}, h('h4', {}, title), scroll)];
}

/** `12 B`, `3.4 kB`, `56 MB` */
export function bytesText(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const rounded = unit > 0 && value < 10 ? value.toFixed(1) : value.toFixed(0);
  return `${rounded} ${UNITS[unit] ?? ''}`;
}

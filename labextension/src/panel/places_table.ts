/** Where trials run or ran: backend, node and accelerators, with how many there are of each state. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { h } from '../../widgets/lib/dom';
import { ACTIVE } from '../../widgets/lib/frames';
import type { TrialRow } from '../api/experiment';
import { placeOf } from '../home/rest_frames';

export interface PlaceCount {
  place: string;
  active: number;
  ended: number;
  trials: number[];
}

/** One row per place, in the order of their first trials; trials that wait have none. */
export function placesOf(trials: readonly TrialRow[]): PlaceCount[] {
  const found = new Map<string, PlaceCount>();
  for (const trial of trials) {
    const place = placeOf(trial);
    if (!place) continue;
    const row = found.get(place) ?? { place, active: 0, ended: 0, trials: [] };
    found.set(place, row);
    row.trials.push(trial.number);
    if (ACTIVE.has(trial.state)) row.active += 1;
    else row.ended += 1;
  }
  return [...found.values()];
}

const MOST_NAMED = 20;

export function placesTable(trials: readonly TrialRow[], trans: TranslationBundle): HTMLElement {
  const places = placesOf(trials);
  if (places.length === 0) return h('p', { class: 'at-soft' }, trans.__('No trial has started yet.'));
  const heads = [trans.__('Place'), trans.__('Running'), trans.__('Ended'), trans.__('Trials')];
  const rows = places.map(({ place, active, ended, trials }) => {
    const more = trials.length > MOST_NAMED ? ' …' : '';
    const cells = [String(active), String(ended), trials.slice(0, MOST_NAMED).join(', ') + more];
    return h('tr', {}, h('th', { scope: 'row' }, place), ...cells.map((text) => h('td', {}, text)));
  });
  const head = h('tr', {}, ...heads.map((text) => h('th', { scope: 'col' }, text)));
  return h('table', { class: 'jp-Autotrain-table' }, h('thead', {}, head), h('tbody', {}, ...rows));
}

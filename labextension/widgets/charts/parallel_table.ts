/** The trials that pass the brushes as a table: for reading aloud, copying and exact values. */

import { compare } from '../lib/columns';
import { h, setText } from '../lib/dom';
import { stateWord } from '../lib/format';
import type { Trial } from '../lib/frames';
import type { Session } from '../lib/session';
import type { Translator } from '../lib/translator';
import type { Dimension } from './dimensions';
import { textOf } from './dimensions';

const ROWS = 200;
const NUMBER = 'number';

export interface TableContent {
  trials: readonly Trial[];
  dimensions: readonly Dimension[];
  /** By their place among the trials. */
  passing: readonly number[];
}

/** How many of all trials pass the brushes. */
export function passText(trans: Translator, passing: number, all: number): string {
  return trans._n('%2 of %1 trial passes', '%2 of %1 trials pass', all, passing);
}

export class ParallelTable {
  readonly #table = h('table', { class: 'at-table' });
  readonly #more: HTMLButtonElement;
  readonly root: HTMLElement;
  #content: TableContent = { trials: [], dimensions: [], passing: [] };
  #sort = NUMBER;
  #isFalling = false;
  #rows = ROWS;

  constructor(readonly session: Session) {
    const onclick = (): void => {
      this.#rows += ROWS;
      this.#fill();
    };
    this.#more = h('button', { type: 'button', class: 'at-button', onclick });
    const scroll = h('div', { class: 'at-scroll', tabindex: 0, role: 'region' }, this.#table);
    scroll.setAttribute('aria-label', session.trans.__('Trials that pass'));
    this.root = h('div', { class: 'at-parallel-table' }, scroll, this.#more);
    this.#table.addEventListener('mouseover', (event) => {
      const row = (event.target as HTMLElement).closest<HTMLElement>('tr[data-trial]');
      if (row) session.point(Number(row.dataset.trial));
    });
    this.#table.addEventListener('mouseleave', () => {
      session.point(undefined);
    });
  }

  update(content: TableContent): void {
    this.#content = content;
    this.#fill();
  }

  /** Mark the chosen trial and the one that is pointed at. */
  mark(): void {
    const { trial, hover } = this.session.choices;
    for (const row of this.#table.tBodies[0]?.rows ?? []) {
      const number = Number(row.dataset.trial);
      row.setAttribute('aria-current', String(number === trial));
      row.toggleAttribute('data-hover', number === hover);
    }
  }

  #fill(): void {
    const { trans } = this.session;
    const { dimensions, passing, trials } = this.#content;
    const focused = this.#table.contains(document.activeElement) ? document.activeElement : null;
    const key = (focused as HTMLElement | null)?.dataset.key;
    const shown = this.#sorted().slice(0, this.#rows);
    const heads = [{ key: NUMBER, title: trans.__('Trial') }, ...dimensions];
    const caption = h('caption', {}, passText(trans, passing.length, trials.length));
    this.#table.replaceChildren(
      caption,
      h(
        'thead',
        {},
        h('tr', {}, ...heads.map((head) => this.#head(head)), h('th', { scope: 'col' }, trans.__('State'))),
      ),
      h('tbody', {}, ...shown.map((place) => this.#row(place))),
    );
    this.#more.hidden = passing.length <= this.#rows;
    const more = Math.min(ROWS, passing.length - this.#rows);
    setText(this.#more, trans.__('Show %1 more of %2 trials', more, passing.length));
    this.mark();
    if (key) this.#table.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`)?.focus();
  }

  #sorted(): number[] {
    const { dimensions, passing, trials } = this.#content;
    const dimension = dimensions.find(({ key }) => key === this.#sort);
    const value = (place: number): number | string =>
      dimension ? (dimension.values[place] ?? NaN) : (trials[place]?.number ?? NaN);
    return [...passing].sort((a, b) => compare(value(a), value(b), this.#isFalling) || a - b);
  }

  #head({ key, title }: { key: string; title: string }): HTMLElement {
    const order = this.#isFalling ? 'descending' : 'ascending';
    const onclick = (): void => {
      this.#isFalling = key === this.#sort && !this.#isFalling;
      this.#sort = key;
      this.#fill();
    };
    const button = h(
      'button',
      { type: 'button', class: 'at-sort', 'data-key': `head ${key}`, onclick },
      title,
    );
    return h('th', { scope: 'col', 'aria-sort': key === this.#sort ? order : 'none' }, button);
  }

  #row(place: number): HTMLElement {
    const { trans } = this.session;
    const { trials, dimensions } = this.#content;
    const trial = trials[place];
    const number = trial?.number ?? 0;
    const star = number === this.session.best()?.number ? ' ★' : '';
    const onclick = (): void => {
      this.session.choose({ trial: number });
    };
    const label = trans.__('Choose trial %1', number);
    const button = h(
      'button',
      { type: 'button', class: 'at-sort', 'data-key': `trial ${number}`, 'aria-label': label, onclick },
      `${number}${star}`,
    );
    return h(
      'tr',
      { 'data-trial': number },
      h('th', { scope: 'row' }, button),
      ...dimensions.map(({ values }) => h('td', {}, textOf(values[place]))),
      h('td', {}, stateWord(trial?.state ?? '', trans)),
    );
  }
}

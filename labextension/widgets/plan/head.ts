/** Name, proof, figures, and the plan as code. */

import { h, setText } from '../lib/dom';
import type { Session } from './session';
import { stillShown } from './sliders';
import { gapText, isProven, limitText, meshText, memoryText, percent, seconds, amount } from './format';
import type { View } from './view';

export class Head {
  readonly #name = h('h3', { class: 'at-name' });
  readonly #gap = h('span', { class: 'at-badge' });
  readonly #figures = h('dl', { class: 'at-figures' });
  readonly #notes = h('div', { class: 'at-facts' });
  /** Why the picture is not of the machine that the sliders ask for. */
  readonly #stale = h('p', { class: 'at-stale', hidden: true });
  /** Why the code does not run as it stands. */
  readonly #missing = h('details', { class: 'at-missing', hidden: true });
  readonly #code = h('pre', { class: 'at-log', tabindex: 0, 'aria-label': 'The plan as code', hidden: true });
  readonly #show: HTMLButtonElement;
  readonly #copy: HTMLButtonElement;
  readonly root: HTMLElement;
  #drawn: View | undefined;

  constructor(readonly session: Session) {
    this.#show = h('button', {
      type: 'button',
      class: 'at-button',
      'aria-expanded': 'false',
      onclick: () => {
        this.#code.hidden = !this.#code.hidden;
        this.#show.setAttribute('aria-expanded', String(!this.#code.hidden));
      },
    });
    this.#show.append('Code');
    this.#copy = h(
      'button',
      { type: 'button', class: 'at-button', onclick: () => void this.#toClipboard() },
      'Copy as code',
    );
    const tools = h('div', { class: 'at-tools' }, this.#show, this.#copy);
    const line = h('div', { class: 'at-head' }, this.#name, this.#gap, tools);
    this.root = h('header', {}, line, this.#stale, this.#figures, this.#notes, this.#missing, this.#code);
  }

  update(): void {
    const { view } = this.session;
    setText(this.#stale, stillShown(this.session));
    this.#stale.hidden = this.session.refusal === '';
    if (this.#drawn === view) return;
    this.#drawn = view;
    setText(this.#name, `${view.name} on ${view.cluster.devices} × ${view.cluster.device}`);
    setText(this.#gap, gapText(view));
    this.#gap.dataset.state = isProven(view) ? 'SUCCEEDED' : 'STOPPING';
    this.#gap.title = 'How much faster any other plan in the space searched can be, at most';
    this.#figures.replaceChildren(...figures(view).map(([word, value, rest]) => figure(word, value, rest)));
    setText(this.#notes, notes(view));
    setText(this.#code, view.code);
    this.#missing.hidden = view.caveats.length === 0;
    this.#missing.replaceChildren(
      h('summary', {}, 'The code does not run as it stands'),
      h('ul', {}, ...view.caveats.map((caveat) => h('li', {}, caveat))),
    );
  }

  async #toClipboard(): Promise<void> {
    const result = await navigator.clipboard.writeText(this.session.view.code).then(
      () => 'Copied',
      () => 'Press Ctrl+C',
    );
    if (result !== 'Copied') this.#select();
    setText(this.#copy, result);
    window.setTimeout(() => {
      setText(this.#copy, 'Copy as code');
    }, 1500);
  }

  /** Where the page may not write to the clipboard, the text is shown and selected for a person to copy. */
  #select(): void {
    this.#code.hidden = false;
    this.#code.focus();
    getSelection()?.selectAllChildren(this.#code);
  }
}

type Figure = [string, string, string];

function figure(word: string, value: string, rest: string): HTMLElement {
  return h(
    'div',
    {},
    h('dt', {}, word),
    h('dd', {}, h('b', {}, value), h('span', { class: 'at-soft' }, rest)),
  );
}

function figures(view: View): Figure[] {
  const { cost } = view;
  const share = (part: number): string => percent(part / Math.max(cost.step_s, 1e-12));
  const bubbles = cost.bubble_s > 1e-9 ? [['bubbles', share(cost.bubble_s), ''] satisfies Figure] : [];
  return [
    ['step', seconds(cost.step_s), ''],
    ['computing', share(cost.compute_s), ''],
    ['exposed communication', share(cost.communication_s), ''],
    ...bubbles,
    ['memory per rank', memoryText(cost.peak_memory_bytes), `of ${limitText(view)}`],
    ['split', meshText(view.mesh), view.microbatches > 1 ? `${view.microbatches} microbatches` : ''],
  ];
}

function notes(view: View): string {
  const how = view.search.replaceAll('_', ' ');
  const states = Object.entries(view.zero)
    .filter(([level]) => level !== '0')
    .map(([level, count]) => `ZeRO ${level} for ${amount(count)} parameters`);
  const again = Object.entries(view.recompute)
    .filter(([mode, count]) => mode !== 'none' && count > 0)
    .map(([mode, count]) => `${mode} recompute in ${count} blocks`);
  const unknown =
    view.unknown.length > 0 ? [`replicated for want of a rule: ${view.unknown.join(', ')}`] : [];
  return [...states, ...again, ...unknown, ...view.notes, `${how}, ${seconds(view.search_s)}`].join(' · ');
}

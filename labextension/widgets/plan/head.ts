/** Name, proof, figures, and the plan as code. */

import { h, setText } from '../lib/dom';
import type { Translator } from '../lib/translator';
import type { Session } from './session';
import { stillShown } from './sliders';
import { amount, memoryText, percent, seconds } from './format';
import { gapText, isProven, limitText, meshText } from './texts';
import type { View } from './view';

export class Head {
  readonly #name = h('h3', { class: 'at-name' });
  readonly #gap = h('span', { class: 'at-badge' });
  /** The plan as one says it to a colleague. */
  readonly #plan = h('p', { class: 'at-plan-line' });
  readonly #figures = h('dl', { class: 'at-figures' });
  readonly #notes = h('div', { class: 'at-facts' });
  /** Why the picture is not of the machine that the sliders ask for. */
  readonly #stale = h('p', { class: 'at-stale', hidden: true });
  /** Why the code does not run as it stands. */
  readonly #missing = h('details', { class: 'at-missing', hidden: true });
  readonly #code: HTMLElement;
  readonly #show: HTMLButtonElement;
  readonly #copy: HTMLButtonElement;
  readonly root: HTMLElement;
  #drawn: View | undefined;

  constructor(readonly session: Session) {
    const { trans } = session;
    const label = trans.__('The plan as code');
    this.#code = h('pre', { class: 'at-log', tabindex: 0, 'aria-label': label, hidden: true });
    this.#show = h('button', {
      type: 'button',
      class: 'at-button',
      'aria-expanded': 'false',
      onclick: () => {
        this.#code.hidden = !this.#code.hidden;
        this.#show.setAttribute('aria-expanded', String(!this.#code.hidden));
      },
    });
    this.#show.append(trans.__('Code'));
    this.#copy = h(
      'button',
      { type: 'button', class: 'at-button', onclick: () => void this.#toClipboard() },
      trans.__('Copy as code'),
    );
    const tools = h('div', { class: 'at-tools' }, this.#show, this.#copy);
    const line = h('div', { class: 'at-head' }, this.#name, this.#gap, tools);
    this.root = h(
      'header',
      {},
      line,
      this.#plan,
      this.#stale,
      this.#figures,
      this.#notes,
      this.#missing,
      this.#code,
    );
  }

  update(): void {
    const { view, trans } = this.session;
    setText(this.#stale, stillShown(this.session));
    this.#stale.hidden = this.session.refusal === '';
    if (this.#drawn === view) return;
    this.#drawn = view;
    setText(this.#name, trans.__('%1 on %2 × %3', view.name, view.cluster.devices, view.cluster.device));
    setText(this.#plan, planText(view, trans));
    setText(this.#gap, gapText(view, trans));
    this.#gap.dataset.state = isProven(view) ? 'SUCCEEDED' : 'STOPPING';
    this.#gap.title = trans.__('How much faster any other plan in the space searched can be, at most');
    this.#figures.replaceChildren(
      ...figures(view, trans).map(([word, value, rest]) => figure(word, value, rest)),
    );
    setText(this.#notes, notes(view, trans));
    setText(this.#code, view.code);
    this.#missing.hidden = view.caveats.length === 0;
    this.#missing.replaceChildren(
      h('summary', {}, trans.__('The code does not run as it stands')),
      h('ul', {}, ...view.caveats.map((caveat) => h('li', {}, caveat))),
    );
  }

  async #toClipboard(): Promise<void> {
    const { view, trans } = this.session;
    const isCopied = await navigator.clipboard.writeText(view.code).then(
      () => true,
      () => false,
    );
    if (!isCopied) this.#select();
    setText(this.#copy, isCopied ? trans.__('Copied') : trans.__('Press Ctrl+C'));
    window.setTimeout(() => {
      setText(this.#copy, trans.__('Copy as code'));
    }, 1500);
  }

  /** Where the page may not write to the clipboard, the text is shown and selected for a person to copy. */
  #select(): void {
    this.#code.hidden = false;
    this.#code.focus();
    getSelection()?.selectAllChildren(this.#code);
  }
}

function planText(view: View, trans: Translator): string {
  if (view.plan) return view.plan;
  const parts = trans._n('%1 microbatch', '%1 microbatches', view.microbatches);
  return [meshText(view.mesh, trans), ...(view.microbatches > 1 ? [parts] : [])].join(', ');
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

function figures(view: View, trans: Translator): Figure[] {
  const { cost } = view;
  const share = (part: number): string => percent(part / Math.max(cost.step_s, 1e-12));
  const bubbles =
    cost.bubble_s > 1e-9 ? [[trans.__('bubbles'), share(cost.bubble_s), ''] satisfies Figure] : [];
  const limit = trans.__('of %1', limitText(view, trans));
  return [
    [trans.__('step'), seconds(cost.step_s), ''],
    [trans.__('computing'), share(cost.compute_s), ''],
    [trans.__('exposed communication'), share(cost.communication_s), ''],
    ...bubbles,
    [trans.__('memory per rank'), memoryText(cost.peak_memory_bytes), limit],
  ];
}

function notes(view: View, trans: Translator): string {
  const how = view.search.replaceAll('_', ' ');
  const states = Object.entries(view.zero)
    .filter(([level]) => level !== '0')
    .map(([level, count]) => trans.__('ZeRO %1 for %2 parameters', level, amount(count)));
  const again = Object.entries(view.recompute)
    .filter(([mode, count]) => mode !== 'none' && count > 0)
    .map(([mode, count]) => trans._n('%2 recompute in %1 block', '%2 recompute in %1 blocks', count, mode));
  const kinds = view.unknown.join(', ');
  const unknown = kinds ? [trans.__('replicated, as no rule splits them: %1', kinds)] : [];
  return [...states, ...again, ...unknown, ...view.notes, `${how}, ${seconds(view.search_s)}`].join(' · ');
}

/** The last lines that the chosen trial has printed. */

import { colored } from './ansi';
import { h, setAttribute, setText } from './dom';
import type { LogTail } from './frames';
import type { Session } from './session';
import type { Translator } from './translator';

const STREAMS = ['stdout', 'stderr'];

export class LogPanel {
  readonly root: HTMLDetailsElement;
  readonly #title = h('span');
  readonly #buttons: HTMLButtonElement[];
  readonly #text = h('pre', { class: 'at-log', tabindex: 0, role: 'log', 'aria-live': 'off' });

  readonly #rank = h('select', {
    class: 'at-button',
    onchange: () => {
      this.session.choose({ rank: Number(this.#rank.value) });
      this.session.askLog();
    },
  });

  #shown: LogTail | undefined;

  constructor(readonly session: Session) {
    setAttribute(this.#rank, 'aria-label', session.trans.__('Rank whose log is shown'));
    this.#buttons = STREAMS.map((stream) =>
      h(
        'button',
        {
          type: 'button',
          class: 'at-button',
          onclick: () => {
            this.#choose(stream);
          },
        },
        stream,
      ),
    );
    const tools = h('div', { class: 'at-tools' }, ...this.#buttons, this.#rank);
    this.root = h('details', { class: 'at-details' }, h('summary', {}, this.#title), tools, this.#text);
    this.root.open = session.choices.logOpen;
    this.root.addEventListener('toggle', () => {
      session.choose({ logOpen: this.root.open });
    });
  }

  update(): void {
    const { trans, choices } = this.session;
    const trial = this.session.focus();
    this.root.hidden = !trial;
    setText(this.#title, trial ? trans.__('Log of trial %1', trial.number) : '');
    if (!this.root.open || !trial) return;
    this.session.askLog();
    for (const button of this.#buttons) {
      setAttribute(button, 'aria-pressed', String(button.textContent === choices.stream));
    }
    this.#updateRanks();
    const tail = this.session.logTail;
    setAttribute(this.#text, 'aria-label', trans.__('%1 of trial %2', choices.stream, trial.number));
    // Who scrolled up to read is not moved; who is at the end stays there.
    const atEnd = this.#text.scrollHeight - this.#text.scrollTop - this.#text.clientHeight < 24;
    if (this.#shown === tail && this.#text.hasChildNodes()) return;
    this.#shown = tail;
    this.#text.replaceChildren(...(tail ? content(tail, trans) : []));
    if (atEnd) this.#text.scrollTop = this.#text.scrollHeight;
  }

  #updateRanks(): void {
    const ranks = this.session.experiment?.ranks ?? 1;
    this.#rank.hidden = ranks === 1;
    if (this.#rank.options.length !== ranks) {
      const options = Array.from({ length: ranks }, (_, rank) =>
        h('option', { value: rank }, this.session.trans.__('rank %1', rank)),
      );
      this.#rank.replaceChildren(...options);
    }
    this.#rank.value = String(this.session.choices.rank);
  }

  #choose(stream: string): void {
    this.session.choose({ stream });
    this.session.askLog();
  }
}

function content(tail: LogTail, trans: Translator): Node[] {
  if (!tail.text && !tail.left_out)
    return [document.createTextNode(trans.__('Nothing on %1 so far.', tail.stream))];
  const before = h('span', { class: 'at-left-out' }, `${trans.__('… %1 left out', tail.left_out)}\n`);
  return [...(tail.left_out ? [before] : []), ...colored(tail.text)];
}

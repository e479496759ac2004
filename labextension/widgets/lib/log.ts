/** What the chosen trial has printed: its last lines, what is found in all of it, and all of it as a file. */

import { colored } from './ansi';
import { h, setAttribute, setText } from './dom';
import { stateWord } from './format';
import type { LogMatch, LogTail, Trial } from './frames';
import { highlight } from './highlight';
import type { Session } from './session';
import type { Translator } from './translator';

const STREAMS = ['stdout', 'stderr'];
const AFTER_TYPING_MS = 300;

export class LogPanel {
  readonly root: HTMLDetailsElement;
  readonly #title = h('span');
  readonly #buttons: HTMLButtonElement[];
  readonly #rank: HTMLSelectElement;
  readonly #attempt: HTMLSelectElement;
  readonly #find: HTMLInputElement;
  readonly #found = h('span', { class: 'at-soft', role: 'status' });
  readonly #steps: HTMLButtonElement[];
  readonly #note = h('p', { class: 'at-soft at-empty', role: 'status' });
  readonly #text = h('pre', { class: 'at-log', tabindex: 0, role: 'log', 'aria-live': 'off' });
  #shown: LogTail | LogMatch | undefined;
  #typing = 0;

  constructor(readonly session: Session) {
    const { trans } = session;
    this.#buttons = STREAMS.map((stream) =>
      button(stream, undefined, () => {
        this.#choose({ stream });
      }),
    );
    this.#rank = this.#select(trans.__('Rank whose log is shown'), 'rank');
    this.#attempt = this.#select(trans.__('Attempt whose log is shown'), 'attempt');
    const label = trans.__('Find in the whole log');
    this.#find = h('input', { type: 'search', class: 'at-find', placeholder: label, 'aria-label': label });
    this.#steps = [
      button('↑', trans.__('Previous match (Shift+Enter)'), () => {
        session.log.step(-1);
      }),
      button('↓', trans.__('Next match (Enter)'), () => {
        session.log.step(1);
      }),
    ];
    for (const step of this.#steps) setAttribute(step, 'aria-label', step.title);
    const save = button(trans.__('Download'), trans.__('Save the whole log as a file'), () => {
      session.log.save();
    });
    const which = h('div', { class: 'at-tools' }, ...this.#buttons, this.#rank, this.#attempt);
    const search = h('div', { class: 'at-tools' }, this.#find, this.#found, ...this.#steps, save);
    const tools = h('div', { class: 'at-log-tools' }, which, search);
    this.root = h(
      'details',
      { class: 'at-details' },
      h('summary', {}, this.#title),
      tools,
      this.#note,
      this.#text,
    );
    this.root.open = session.choices.logOpen;
    this.#listen();
  }

  update(): void {
    const { trans, choices, log } = this.session;
    const trial = this.session.focus();
    this.root.hidden = !trial;
    setText(this.#title, trial ? this.#titleOf(trial) : '');
    if (!this.root.open || !trial) return;
    log.ask();
    for (const each of this.#buttons)
      setAttribute(each, 'aria-pressed', String(each.textContent === choices.stream));
    this.#updateSelects(trial);
    this.#updateSearch();
    setText(this.#note, log.note);
    this.#note.hidden = log.note === '';
    setAttribute(this.#text, 'aria-label', trans.__('%1 of trial %2', choices.stream, trial.number));
    this.#updateText();
  }

  #updateText(): void {
    const { log, trans } = this.session;
    const shown = log.match?.total ? log.match : log.tail;
    if (this.#shown === shown && this.#text.hasChildNodes()) return;
    const isAtEnd = this.#isAtEnd();
    this.#shown = shown;
    const lines = document.createDocumentFragment();
    lines.append(...colored(shown?.text ?? ''));
    const mark = isMatch(shown) ? highlight(lines, shown.query)[shown.place] : undefined;
    this.#text.replaceChildren(...before(shown, trans), lines);
    if (isMatch(shown)) this.#show(mark);
    else if (isAtEnd) this.#text.scrollTop = this.#text.scrollHeight;
  }

  /** Who scrolled up to read is not moved; who is at the end, or comes back from a match, is at the end. */
  #isAtEnd(): boolean {
    const { scrollHeight, scrollTop, clientHeight } = this.#text;
    return isMatch(this.#shown) || scrollHeight - scrollTop - clientHeight < 24;
  }

  #show(marks: HTMLElement[] = []): void {
    for (const mark of marks) mark.className = 'at-current';
    this.#text.scrollTop = (marks[0]?.offsetTop ?? 0) - this.#text.clientHeight / 2;
  }

  #titleOf(trial: Trial): string {
    const { trans } = this.session;
    const best = trial.number === this.session.best()?.number ? [trans.__('best')] : [];
    const parts = [trans.__('Log of trial %1', trial.number), ...best, stateWord(trial.state, trans)];
    return parts.join(' · ');
  }

  #updateSelects(trial: Trial): void {
    const { trans, choices, experiment } = this.session;
    const ranks = Array.from({ length: experiment?.ranks ?? 1 }, (_, rank) => rank);
    fill(
      this.#rank,
      ranks.map((rank) => [rank, trans.__('rank %1', rank)]),
      choices.rank,
    );
    const attempts = Array.from({ length: trial.attempt }, (_, i) => i + 1);
    fill(
      this.#attempt,
      attempts.map((attempt) =>
        attempt === trial.attempt
          ? [0, trans.__('attempt %1 (present)', attempt)]
          : [attempt, trans.__('attempt %1', attempt)],
      ),
      choices.attempt,
    );
  }

  #updateSearch(): void {
    const { trans, choices, log } = this.session;
    if (document.activeElement !== this.#find) this.#find.value = choices.query;
    const total = log.match?.total ?? 0;
    const text = total ? trans.__('%1 of %2', log.match?.match, total) : trans.__('not found');
    setText(this.#found, choices.query === '' ? '' : log.match ? text : '…');
    for (const step of this.#steps) {
      step.hidden = choices.query === '';
      setAttribute(step, 'disabled', total === 0);
    }
  }

  #listen(): void {
    this.root.addEventListener('toggle', () => {
      // What is read stays when another trial becomes the best.
      const trial = this.root.open ? this.session.focus()?.number : this.session.choices.trial;
      this.session.choose({ logOpen: this.root.open, trial });
    });
    this.#find.addEventListener('input', () => {
      window.clearTimeout(this.#typing);
      this.#typing = window.setTimeout(() => {
        this.session.log.find(this.#find.value);
      }, AFTER_TYPING_MS);
    });
    this.#find.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.#enter(event.shiftKey ? -1 : 1);
      if (event.key === 'Escape') this.#clear();
    });
  }

  #enter(by: number): void {
    const { log, choices } = this.session;
    window.clearTimeout(this.#typing);
    if (this.#find.value === choices.query) log.step(by);
    else log.find(this.#find.value);
  }

  #clear(): void {
    window.clearTimeout(this.#typing);
    this.#find.value = '';
    this.session.log.find('');
  }

  #select(label: string, choice: 'rank' | 'attempt'): HTMLSelectElement {
    const onchange = (): void => {
      this.#choose({ [choice]: Number(select.value) });
    };
    const select = h('select', { class: 'at-button', 'aria-label': label, onchange });
    return select;
  }

  #choose(choices: { stream?: string; rank?: number; attempt?: number }): void {
    this.session.choose(choices);
    this.session.log.ask();
  }
}

function button(text: string, title: string | undefined, onclick: () => void): HTMLButtonElement {
  return h('button', { type: 'button', class: 'at-button', title, onclick }, text);
}

/** The options of a choice, which is hidden where there is only one. */
function fill(select: HTMLSelectElement, options: [number, string][], chosen: number): void {
  select.hidden = options.length < 2;
  const shape = JSON.stringify(options);
  if (select.dataset.options !== shape) {
    select.dataset.options = shape;
    select.replaceChildren(...options.map(([value, text]) => h('option', { value }, text)));
  }
  select.value = String(chosen);
}

function isMatch(shown: LogTail | LogMatch | undefined): shown is LogMatch {
  return shown !== undefined && 'query' in shown;
}

/** What stands before the lines. */
function before(shown: LogTail | LogMatch | undefined, trans: Translator): Node[] {
  if (shown && !shown.text && !shown.left_out)
    return [document.createTextNode(trans.__('Nothing on %1 so far.', shown.stream))];
  if (!shown?.left_out) return [];
  return [h('span', { class: 'at-left-out' }, `${trans.__('… %1 left out', shown.left_out)}\n`)];
}

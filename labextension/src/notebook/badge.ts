/** The state of a cell's last run, beside the cell; pressed, it opens the experiment. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { h, setAttribute, setText } from '../../widgets/lib/dom';
import { stateWord } from '../../widgets/lib/format';
import { ACTIVE } from '../../widgets/lib/frames';

export interface BadgeFacts {
  id: string;
  name: string;
  state: string;
  final: boolean;
  trials: number;
  counts: Record<string, number>;
}

export class Badge extends Widget {
  readonly #button: HTMLButtonElement;
  readonly #state = h('span');
  readonly #count = h('span');
  #id = '';

  constructor(
    private readonly trans: TranslationBundle,
    open: (id: string) => void,
  ) {
    super();
    this.addClass('jp-Autotrain-badge');
    const onclick = (): void => {
      open(this.#id);
    };
    this.#button = h('button', { type: 'button', onclick }, this.#state, this.#count);
    this.node.append(this.#button);
  }

  display({ id, name, state, final, trials, counts }: BadgeFacts): void {
    const ended = endedOf(counts);
    const word = stateWord(state, this.trans);
    const said = this.trans.__('%1: %2, %3 of %4 trials ended.', name, word, ended, trials);
    const title = `${said} ${this.trans.__('Open the experiment')}`;
    this.#id = id;
    setText(this.#state, word);
    setText(this.#count, final ? '' : `${ended}/${trials}`);
    setAttribute(this.#button, 'data-state', state);
    setAttribute(this.#button, 'title', title);
    setAttribute(this.#button, 'aria-label', title);
  }
}

function endedOf(counts: Record<string, number>): number {
  const ended = Object.entries(counts).filter(([state]) => !ACTIVE.has(state));
  return ended.reduce((sum, [, many]) => sum + many, 0);
}

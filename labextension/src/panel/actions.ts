/** What can be done with an experiment: a button per command that is there and fits. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { h } from '../../widgets/lib/dom';
import { fits } from '../actions/fitting';
import { actionTexts } from '../actions/texts';
import type { Action } from '../api/actions';
import type { ExperimentDetails } from '../api/experiment';
import type { RestWire } from '../home/rest_wire';

/** Stopping is a button of the header. */
const OFFERED: Action[] = ['retry', 'resume', 'rerun', 'delete'];

/** What an action is called, and what it does. */
interface Texts {
  label: string;
  consequence: string;
}

interface Offer {
  command: string;
  button: HTMLButtonElement;
  isOffered: (details: ExperimentDetails) => boolean;
}

export class Actions {
  readonly root: HTMLElement;
  readonly #offers: Offer[];

  constructor(
    private readonly wire: RestWire,
    private readonly commands: CommandRegistry,
    trans: TranslationBundle,
  ) {
    const texts = actionTexts(trans, '');
    this.#offers = OFFERED.map((action) =>
      this.#offer(`autotrain:${action}`, texts[action], (details) => isOffered(action, details)),
    );
    this.#offers.push(
      this.#offer(
        'autotrain:open-cell',
        { label: trans.__('Open Cell'), consequence: trans.__('Show the cell in its notebook.') },
        (details) => details.notebook_path !== '',
      ),
    );
    const buttons = this.#offers.map(({ button }) => button);
    this.root = h('div', { class: 'at-tools', role: 'group', 'aria-label': trans.__('Actions') }, ...buttons);
  }

  update(): void {
    const { details, isDeleted } = this.wire;
    for (const { command, button, isOffered } of this.#offers) {
      const isThere = this.commands.hasCommand(command) && !isDeleted;
      button.hidden = !isThere || !details || !isOffered(details);
    }
  }

  #offer(command: string, { label, consequence }: Texts, isOffered: Offer['isOffered']): Offer {
    const onclick = (): void => {
      void this.commands.execute(command, { id: this.wire.id });
    };
    const button = h(
      'button',
      { type: 'button', class: 'at-button', title: consequence, hidden: true, onclick },
      label,
    );
    return { command, button, isOffered };
  }
}

/** The same cell again is offered when it has ended: while it runs, it is the usual accident. */
function isOffered(action: Action, details: ExperimentDetails): boolean {
  return fits(action, details) && (action !== 'rerun' || details.final);
}

/** Asks which experiment is meant. */

import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { h } from '../../widgets/lib/dom';
import { listExperiments } from '../api/experiments';
import type { Experiment } from '../api/experiments';
import { MAGIC } from '../header/header_lines';

const MOST_OFFERED = 50;

/** The id of the experiment that is chosen in a dialog; undefined where none is. */
export async function chosenExperiment(trans: TranslationBundle): Promise<string | undefined> {
  const newest = { sort: 'created', order: 'descending', limit: MOST_OFFERED } as const;
  const { experiments } = await listExperiments({ text: '', tag: '', ...newest });
  if (experiments.length === 0) {
    Notification.info(trans.__('No experiments yet. Begin a cell with %1 to make one.', MAGIC), {
      autoClose: 8000,
    });
    return undefined;
  }
  const { button, value } = await showDialog({
    title: trans.__('Open Experiment'),
    body: new Choice(trans.__('Experiment'), experiments),
    focusNodeSelector: 'select',
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Open') }),
    ],
  });
  return button.accept ? (value ?? undefined) : undefined;
}

class Choice extends Widget {
  readonly #select: HTMLSelectElement;

  constructor(label: string, experiments: Experiment[]) {
    super();
    const options = experiments.map(({ id, name }) => h('option', { value: id }, `${name} (${id})`));
    this.#select = h('select', { class: 'jp-mod-styled' }, ...options);
    this.node.append(h('label', {}, label, this.#select));
  }

  getValue(): string {
    return this.#select.value;
  }
}

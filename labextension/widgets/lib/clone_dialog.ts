/** "Clone with changes": a new trial from the checkpoint of another one, with some of its parameters changed. */

import { h } from './dom';
import type { Json, Trial } from './frames';
import { keepKeys } from './keys';
import type { Session } from './session';
import type { Translator } from './translator';

/** A parameter that can be changed; `read` gives undefined where what is typed is no value. */
interface Field {
  name: string;
  before: Json;
  input: HTMLInputElement;
  read: () => Json | undefined;
}

/** Ask for the changes in a dialog over the view; the focus then returns to where it was. */
export function askForClone(session: Session, trial: Trial, view: Element): void {
  const { trans } = session;
  const fields = Object.entries(trial.params).map(([name, before]) => fieldOf(name, before, trans));
  const title = trans.__('Clone trial %1 with changes', trial.number);
  const told = trans.__('A new trial goes on from its last checkpoint, or starts over where it has none.');
  const rows = fields.map(({ name, input }) => h('label', {}, h('span', {}, name), input));
  const close = (): void => {
    dialog.close();
  };
  const cancel = h('button', { type: 'button', class: 'at-button', onclick: close }, trans.__('Cancel'));
  const clone = h('button', { type: 'submit', class: 'at-button' }, trans.__('Clone'));
  const form = h(
    'form',
    { method: 'dialog' },
    h('h4', { class: 'at-heading' }, title),
    h('p', { class: 'at-soft' }, told),
    ...rows,
    h('div', { class: 'at-tools' }, cancel, clone),
  );
  const dialog = h('dialog', { class: 'at-dialog', 'aria-label': title }, form);
  const endKeys = keepKeys(dialog);
  form.addEventListener('submit', () => {
    session.clone(trial.number, changesOf(fields));
  });
  dialog.addEventListener('close', () => {
    endKeys();
    dialog.remove();
  });
  view.append(dialog);
  dialog.showModal();
}

function changesOf(fields: Field[]): Record<string, Json> {
  const changes: Record<string, Json> = {};
  for (const { name, before, read } of fields) {
    const value = read();
    if (value !== undefined && JSON.stringify(value) !== JSON.stringify(before)) changes[name] = value;
  }
  return changes;
}

/** Text stays text; all else is typed as JSON, of the kind that it was. */
function fieldOf(name: string, before: Json, trans: Translator): Field {
  const text = typeof before === 'string' ? before : JSON.stringify(before);
  const input = h('input', { type: 'text', class: 'at-input', value: text, spellcheck: 'false' });
  const read = (): Json | undefined => (typeof before === 'string' ? input.value : typed(input.value, before));
  input.addEventListener('input', () => {
    const expected = typeof before === 'number' ? trans.__('Type a number.') : trans.__('Type it as JSON.');
    input.setCustomValidity(read() === undefined ? expected : '');
  });
  return { name, before, input, read };
}

/** The value that is typed; undefined where it is none, or no number in place of one. */
export function typed(text: string, before: Json): Json | undefined {
  try {
    const value = JSON.parse(text) as Json;
    return typeof before === 'number' && typeof value !== 'number' ? undefined : value;
  } catch {
    return undefined;
  }
}

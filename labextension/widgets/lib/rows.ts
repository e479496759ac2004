/** The cells of one row of the trials table, made once and touched only where something changed. */

import { askForClone } from './clone_dialog';
import type { Column } from './columns';
import { h, setAttribute, setText } from './dom';
import { ACTIVE } from './frames';
import type { Trial } from './frames';
import { icon, swatch } from './icons';
import type { Session } from './session';
import { focusQuestion, pressStop, question } from './stopping';

/** A state in one sign, for eyes that do not tell colours apart. */
const SIGNS: Record<string, string> = {
  WAITING: '…',
  PREPARING: '◔',
  RUNNING: '▶',
  SUCCEEDED: '✓',
  EARLY_STOPPED: '⤓',
  FAILED: '✕',
  LOST: '?',
  CANCELLED: '⊘',
  PREEMPTED: '↺',
};
const CLASSES: Record<Column['kind'], string> = {
  swatch: 'at-swatch',
  number: 'at-right at-number',
  state: 'at-state',
  right: 'at-right',
  reason: 'at-reason',
  actions: 'at-actions',
};

export function updateRow(
  session: Session,
  row: HTMLTableRowElement,
  trial: Trial,
  columns: Column[],
  stop: boolean,
): void {
  while (row.cells.length > columns.length) row.deleteCell(-1);
  const moved = row.dataset.trial !== String(trial.number);
  setAttribute(row, 'data-trial', trial.number);
  columns.forEach((column, i) => {
    const cell = row.cells[i] ?? row.insertCell();
    if (cell.className !== CLASSES[column.kind]) {
      cell.className = CLASSES[column.kind];
      cell.replaceChildren();
    }
    setAttribute(cell, 'role', 'gridcell');
    updateCell(session, cell, column, trial, moved);
  });
  for (const button of row.querySelectorAll<HTMLElement>('button')) button.tabIndex = stop ? 0 : -1;
}

function updateCell(
  session: Session,
  cell: HTMLTableCellElement,
  column: Column,
  trial: Trial,
  moved: boolean,
): void {
  if (column.kind === 'swatch') updateSwatch(session, cell, trial, moved);
  else if (column.kind === 'actions') updateActions(session, cell, trial, moved);
  else if (column.kind === 'state') updateState(session, cell, column, trial);
  else updateText(cell, column.text(trial));
}

function updateText(cell: HTMLTableCellElement, text: string): void {
  setText(cell, text);
  setAttribute(cell, 'title', text.length > 18 ? text : undefined);
}

function updateState(session: Session, cell: HTMLTableCellElement, column: Column, trial: Trial): void {
  const ending = session.ending.has(trial.number) && ACTIVE.has(trial.state);
  setAttribute(cell, 'data-state', ending ? 'STOPPING' : trial.state);
  setAttribute(cell, 'data-sign', ending ? '◼' : (SIGNS[trial.state] ?? ''));
  setText(cell, ending ? session.trans.__('Stopping') : column.text(trial));
}

function updateSwatch(session: Session, cell: HTMLTableCellElement, trial: Trial, moved: boolean): void {
  if (moved || !cell.firstElementChild) {
    const press = (): void => {
      session.toggle('hidden', trial.number);
    };
    cell.replaceChildren(h('button', { type: 'button', onclick: press }, swatch(trial.number)));
  }
  const { trans } = session;
  const button = cell.firstElementChild as HTMLElement;
  const hidden = session.choices.hidden.has(trial.number);
  setAttribute(button, 'aria-pressed', String(!hidden));
  setAttribute(button, 'aria-label', trans.__('Curves of trial %1', trial.number));
  setAttribute(button, 'title', hidden ? trans.__('Show its curves') : trans.__('Hide its curves'));
}

function updateActions(session: Session, cell: HTMLTableCellElement, trial: Trial, moved: boolean): void {
  const active = ACTIVE.has(trial.state) && !session.ending.has(trial.number);
  const asking = session.asking === trial.number && active;
  const shape = `${asking} ${active}`;
  const changed = moved || cell.dataset.shape !== shape;
  if (changed) fillActions(session, cell, trial, { active, asking });
  cell.dataset.shape = shape;
  const { trans, choices } = session;
  const pinned = choices.pinned.has(trial.number);
  const pin = cell.querySelector<HTMLElement>('.at-pin');
  if (!pin) return;
  setAttribute(pin, 'aria-pressed', String(pinned));
  setAttribute(pin, 'title', pinned ? trans.__('Unpin') : trans.__('Pin to the top, here and in charts'));
}

function fillActions(
  session: Session,
  cell: HTMLTableCellElement,
  trial: Trial,
  { active, asking }: { active: boolean; asking: boolean },
): void {
  const { trans } = session;
  const focused = cell.contains(document.activeElement);
  const stopLabel = trans.__('Stop trial %1', trial.number);
  const pin = iconButton('pin', trans.__('Pin trial %1', trial.number), 'at-pin', () => {
    session.toggle('pinned', trial.number);
  });
  const stop = iconButton('stop', stopLabel, 'at-danger', () => {
    pressStop(session, trial.number);
  });
  setAttribute(stop, 'title', stopLabel);
  const cloneLabel = trans.__('Clone trial %1 with changes', trial.number);
  const clone = iconButton('clone', cloneLabel, 'at-clone', () => {
    const view = cell.closest('.autotrain');
    const now = session.trials.get(trial.number) ?? trial;
    if (view) askForClone(session, now, view);
  });
  setAttribute(clone, 'title', cloneLabel);
  const buttons = [...(active ? [stop] : []), ...(session.experiment?.clones ? [clone] : []), pin];
  cell.replaceChildren(...(asking ? [question(session, trial.number)] : []), ...buttons);
  if (asking) focusQuestion(cell);
  else if (focused) (active ? stop : pin).focus();
}

function iconButton(
  name: 'clone' | 'pin' | 'stop',
  label: string,
  kind: string,
  onclick: () => void,
): HTMLButtonElement {
  return h('button', { type: 'button', class: `at-icon ${kind}`, 'aria-label': label, onclick }, icon(name));
}

/** The keys and clicks that choose rows, alike in every list of experiments. */

import type * as React from 'react';
import type { Picked } from './picked';
import { extended, isSection, neighbour, only, toggled } from './picked';
import type { RowsModel } from './rows_model';

export function isWithControl(event: React.KeyboardEvent | React.MouseEvent): boolean {
  return event.ctrlKey || event.metaKey;
}

/** Go to another row or choose rows, by a key that is pressed on a row; gives whether the key is one of these. */
export function pickByKey(event: React.KeyboardEvent, model: RowsModel, id: string): boolean {
  const { rows } = model;
  const picked = { ...model.picked, focused: id };
  const by = { ArrowDown: 1, ArrowUp: -1, Home: -rows.length, End: rows.length }[event.key];
  if (by !== undefined) model.pick(pickedAt(event, picked, neighbour(picked, by, rows), rows));
  else if (event.key === ' ') model.pick(toggled(picked, id));
  else if (event.key === 'Escape') model.pick({ ...picked, chosen: [] });
  else if (event.key === 'a' && isWithControl(event))
    model.pick({ ...picked, chosen: rows.filter((row) => !isSection(row)) });
  else return false;
  return true;
}

/** Shift extends the range, Control only moves the focus. */
function pickedAt(event: React.KeyboardEvent, picked: Picked, to: string, rows: string[]): Picked {
  if (event.shiftKey) return extended(picked, to, rows);
  return isWithControl(event) ? { ...picked, focused: to } : only(to);
}

/** Choose rows by a click with a key held or on a box; gives whether it was one. */
export function pickByClick(event: React.MouseEvent, model: RowsModel, id: string): boolean {
  const isOnBox = (event.target as HTMLElement).closest('.jp-Autotrain-check') !== null;
  if (event.shiftKey) model.pick(extended(model.picked, id, model.rows));
  else if (isWithControl(event) || isOnBox) model.pick(toggled(model.picked, id));
  else return false;
  return true;
}

/** The row that an event is on; "" where it is on none. */
export function idAt(target: EventTarget): string {
  return (target as Element).closest<HTMLElement>('[data-id]')?.dataset.id ?? '';
}

export function rowOf(root: HTMLElement | null, id: string): HTMLElement | null {
  return root?.querySelector<HTMLElement>(`[data-id="${CSS.escape(id)}"]`) ?? null;
}

/** Where keys have gone to; a click says for itself what it chooses. */
export function pickByFocus(event: React.FocusEvent, model: RowsModel): void {
  const id = event.target.getAttribute('data-id');
  if (id) model.pick(id === model.picked.focused ? model.picked : only(id));
}

/** What a pointer has pressed: rows of a list that is drawn anew may move under it before it is released. */
export class Pointer {
  #pressed = '';
  #isPressing = false;

  /** Whether a focus that comes now comes by a press. */
  get isPressing(): boolean {
    return this.#isPressing;
  }

  press(event: React.MouseEvent): void {
    this.#pressed = idAt(event.target);
    this.#isPressing = true;
    window.setTimeout(() => {
      this.#isPressing = false;
    });
  }

  /** The row of a click: the one that was pressed. A click that no pointer made is on its target. */
  clicked(event: React.MouseEvent): string {
    return event.detail ? this.#pressed : idAt(event.target);
  }
}

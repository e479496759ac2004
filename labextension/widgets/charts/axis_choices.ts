/** Which axes parallel coordinates have: parameters, the last value of each metric, the objective; and their menu. */

import { secondsOf } from '../lib/columns';
import { h } from '../lib/dom';
import type { Json, Trial } from '../lib/frames';
import type { Session } from '../lib/session';
import type { Translator } from '../lib/translator';
import type { Column } from './dimensions';
import { flatten } from './dimensions';

export const OBJECTIVE = 'value';
const MOST_PARAMETERS = 10;

/** An axis that a person can show or hide. */
export interface AxisChoice {
  column: Column;
  isShown: boolean;
}

/**
 * All axes there could be, from the left to the right.
 *
 * @param chosen By key, whether a person wants it; of the others the first parameters and the objective are shown.
 */
export function axisChoices(
  session: Session,
  trials: readonly Trial[],
  chosen: ReadonlyMap<string, boolean>,
): AxisChoice[] {
  const label = session.experiment?.objective_label;
  const parameters = parameterColumns(trials, session.experiment?.options);
  const metrics = session.metrics().map((name) => metricColumn(session, trials, name));
  const spent_s = trials.map((trial) => secondsOf(session, trial));
  const time = { key: 'time', title: session.trans.__('Time (s)'), values: spent_s };
  const choices = [
    ...parameters.map((column, i) => ({ column, isShown: i < MOST_PARAMETERS })),
    ...[time, ...metrics].map((column) => ({ column, isShown: false })),
  ];
  if (label) {
    const values = trials.map((trial) => trial.value ?? undefined);
    choices.push({ column: { key: OBJECTIVE, title: label, values }, isShown: true });
  }
  return choices.map(({ column, isShown }) => ({ column, isShown: chosen.get(column.key) ?? isShown }));
}

function parameterColumns(trials: readonly Trial[], options?: ReadonlyMap<string, number[]>): Column[] {
  const flat = trials.map((trial) => flatten(trial.params));
  const names = new Set(flat.flatMap((params) => [...params.keys()]));
  return [...names].map((name) => ({
    key: `param ${name}`,
    title: name,
    values: flat.map((params): Json | undefined => params.get(name)),
    options: options?.get(name),
  }));
}

function metricColumn(session: Session, trials: readonly Trial[], name: string): Column {
  const last = ({ number }: Trial): number | undefined => session.curve(name, number)?.values.at(-1);
  return { key: `metric ${name}`, title: name, values: trials.map(last) };
}

/** The menu of axes that can be shown. */
export class AxisMenu {
  readonly root = h('details', { class: 'at-menu' });
  readonly #list = h('div', { class: 'at-menu-list' });
  #shape = '';

  constructor(
    trans: Translator,
    readonly show: (key: string, isShown: boolean) => void,
  ) {
    this.root.append(h('summary', { class: 'at-button' }, trans.__('Axes')), this.#list);
    this.root.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || !this.root.open) return;
      this.root.open = false;
      this.root.querySelector('summary')?.focus();
    });
    this.root.addEventListener('focusout', ({ relatedTarget }) => {
      if (relatedTarget instanceof Node && !this.root.contains(relatedTarget)) this.root.open = false;
    });
  }

  update(choices: readonly AxisChoice[]): void {
    const shape = JSON.stringify(choices.map(({ column, isShown }) => [column.key, isShown]));
    if (shape === this.#shape) return;
    this.#shape = shape;
    const focused = this.#list.querySelector<HTMLInputElement>(':focus')?.name;
    this.#list.replaceChildren(...choices.map((choice) => this.#box(choice)));
    if (focused) this.#list.querySelector<HTMLElement>(`[name="${CSS.escape(focused)}"]`)?.focus();
  }

  #box({ column, isShown }: AxisChoice): HTMLElement {
    const onchange = (): void => {
      this.show(column.key, !isShown);
    };
    const box = h('input', { type: 'checkbox', name: column.key, onchange });
    box.checked = isShown;
    return h('label', {}, box, column.title);
  }
}

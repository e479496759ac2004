/** Which axes parallel coordinates have: the parameters of trials, the last value of each metric, the objective. */

import { secondsOf } from '../lib/columns';
import type { Json, Trial } from '../lib/frames';
import type { Session } from '../lib/session';
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

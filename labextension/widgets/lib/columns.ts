/** The columns of the trials table: which there are, which are shown, and what stands in them. */

import { duration, number, plain, stateWord } from './format';
import type { Trial } from './frames';
import { ACTIVE } from './frames';
import type { Session } from './session';

export type Kind = 'swatch' | 'number' | 'state' | 'right' | 'reason' | 'actions';

export interface Column {
  key: string;
  head: string;
  title: string;
  kind: Kind;
  value(trial: Trial): number | string;
  text(trial: Trial): string;
}

/** A column that a person can show or hide. */
export interface Choice {
  column: Column;
  group: 'metrics' | 'parameters';
  shown: boolean;
}

const MOST_PARAMETERS = 6;
const MOST_METRICS = 3;

export function columnsOf(session: Session, trials: Trial[]): Column[] {
  const { trans } = session;
  const objective = session.experiment?.objective_label;
  const chosen = choicesOf(session, trials).filter(({ shown }) => shown);
  const metrics = chosen.filter(({ group }) => group === 'metrics').map(({ column }) => column);
  const parameters = chosen.filter(({ group }) => group === 'parameters').map(({ column }) => column);
  return [
    fixed('swatch', 'swatch', ''),
    {
      ...fixed('number', 'number', '#'),
      value: ({ number }) => number,
      text: ({ number }) => String(number),
    },
    {
      ...fixed('state', 'state', trans.__('State')),
      value: ({ state }) => state,
      text: ({ state }) => stateWord(state, trans),
    },
    ...(objective ? [objectiveColumn(session, objective)] : []),
    ...furtherColumns(session),
    ...metrics,
    ...parameters,
    ...(trials.some((trial) => trial.started_from) ? [sourceColumn(session)] : []),
    timeColumn(session),
    ...(trials.some(({ runs_on }) => runs_on) ? [placementColumn(session)] : []),
    reasonColumn(trials.some((trial) => trial.reason !== '') ? trans.__('Reason') : ''),
    fixed('actions', 'actions', ''),
  ];
}

/** Without an objective the first metrics are shown, else the chosen ones; and the first parameters. */
export function choicesOf(session: Session, trials: Trial[]): Choice[] {
  const { columns } = session.choices;
  const label = session.experiment?.objective_label;
  const labels = session.experiment?.objectives.map((one) => one.label) ?? [];
  const metrics = session.metrics().filter((name) => ![label, ...labels].includes(`${name} (last)`));
  const names = [...new Set(trials.flatMap((trial) => Object.keys(trial.params)))];
  const shown = (key: string, usual: boolean): boolean => columns.get(key) ?? usual;
  return [
    ...metrics.map((name, i): Choice => {
      const column = metricColumn(session, name);
      return { column, group: 'metrics', shown: shown(column.key, !label && i < MOST_METRICS) };
    }),
    ...names.map((name, i): Choice => {
      const column = parameterColumn(session, name);
      return { column, group: 'parameters', shown: shown(column.key, i < MOST_PARAMETERS) };
    }),
  ];
}

export function secondsOf(session: Session, trial: Trial): number {
  if (trial.started_s === null) return NaN;
  return (trial.ended_s ?? session.now_s()) - trial.started_s;
}

/** Missing numbers go last in both directions. */
export function compare(a: number | string, b: number | string, falling: boolean): number {
  const [missingA, missingB] = [Number.isNaN(a), Number.isNaN(b)];
  if (missingA || missingB) return Number(missingA) - Number(missingB);
  const order =
    typeof a === 'number' && typeof b === 'number'
      ? a - b
      : String(a).localeCompare(String(b), undefined, { numeric: true });
  return falling ? -order : order;
}

function fixed(key: string, kind: Kind, head: string): Column {
  return { key, kind, head, title: '', value: () => '', text: () => '' };
}

function objectiveColumn({ trans }: Session, label: string): Column {
  return {
    ...fixed('value', 'right', label),
    title: trans.__('The objective'),
    value: (trial) => trial.value ?? NaN,
    text: (trial) => (trial.value === null ? '' : number(trial.value)),
  };
}

/** Of the objectives that trials are not ranked by. */
function furtherColumns({ experiment, trans }: Session): Column[] {
  const further = experiment?.objectives.slice(1) ?? [];
  return further.map(({ label }, i) => ({
    ...fixed(`value ${i + 2}`, 'right', label),
    title: trans.__('A further objective'),
    value: ({ more_values }) => more_values[i] ?? NaN,
    text: ({ more_values }) => (typeof more_values[i] === 'number' ? number(more_values[i]) : ''),
  }));
}

function metricColumn(session: Session, name: string): Column {
  const last = (trial: Trial): number | undefined => session.curve(name, trial.number)?.values.at(-1);
  return {
    ...fixed(`metric ${name}`, 'right', name),
    title: session.trans.__('The last value of %1', name),
    value: (trial) => last(trial) ?? NaN,
    text: (trial) => {
      const value = last(trial);
      return value === undefined ? '' : number(value);
    },
  };
}

function parameterColumn({ trans }: Session, name: string): Column {
  return {
    ...fixed(`param ${name}`, 'right', name),
    title: trans.__('The parameter %1', name),
    value: (trial) => {
      const value = trial.params[name];
      return typeof value === 'number' ? value : plain(value);
    },
    text: (trial) => plain(trial.params[name]),
  };
}

function timeColumn(session: Session): Column {
  const text = (trial: Trial): string => {
    const spent_s = secondsOf(session, trial);
    if (Number.isNaN(spent_s)) return '';
    return duration(ACTIVE.has(trial.state) ? Math.floor(spent_s) : spent_s);
  };
  return { ...fixed('time', 'right', session.trans.__('Time')), value: (trial) => secondsOf(session, trial), text };
}

function placementColumn({ trans }: Session): Column {
  return {
    ...fixed('placement', 'right', trans.__('Runs on')),
    title: trans.__('Place and node'),
    value: ({ runs_on }) => runs_on,
    text: ({ runs_on }) => runs_on,
  };
}

function sourceColumn({ trans }: Session): Column {
  return {
    ...fixed('source', 'right', trans.__('From')),
    title: trans.__('The trial whose checkpoint it began with'),
    value: ({ parent, started_from }) => parent ?? started_from,
    text: ({ parent, started_from }) => (parent === null ? started_from : `#${parent}`),
  };
}

function reasonColumn(head: string): Column {
  return {
    ...fixed('reason', 'reason', head),
    value: (trial) => trial.reason,
    text: (trial) => trial.reason,
  };
}

/** What a person has chosen in a view; many views of one model share it. */

const METRIC = 'metric ';

export const ALL_METRICS = '*';

/** What lies along the x axis: the step, the seconds since the trial began, the time of day, or a metric. */
export type Axis = 'step' | 'trial' | 'clock' | `metric ${string}`;

/** Bounds of the y axis that a person has set; undefined follows the values. */
export type Limits = [number | undefined, number | undefined];

/** What is to be stopped: one trial, or all of the experiment. */
export type Target = number | 'all';

/** The axis along which a metric lies. */
export function axisAlong(metric: string): Axis {
  return `${METRIC}${metric}`;
}

/** The metric that lies along an axis; undefined for the others. */
export function metricAlong(axis: Axis): string | undefined {
  return axis.startsWith(METRIC) ? axis.slice(METRIC.length) : undefined;
}

export interface Choices {
  metric: string | undefined;
  log: boolean;
  table: boolean;
  /** Whether the settings of the charts are open. */
  settings: boolean;
  sort: string;
  falling: boolean;
  /** Columns of the trials table that are shown or not, by key; of others the usual ones are. */
  columns: ReadonlyMap<string, boolean>;
  trial: number | undefined;
  /** The attempt whose log is shown; 0 is the present one. */
  attempt: number;
  stream: string;
  /** The worker whose log is shown. */
  rank: number;
  logOpen: boolean;
  /** What is looked for in the log. */
  query: string;
  axis: Axis;
  /** The weight of the past in the moving average, 0 to below 1. */
  smoothing: number;
  hidden: ReadonlySet<number>;
  pinned: ReadonlySet<number>;
  /** The trial that is pointed at. */
  hover: number | undefined;
}

export function firstChoices(): Choices {
  return {
    metric: undefined,
    log: false,
    table: false,
    settings: false,
    sort: 'number',
    falling: false,
    columns: new Map(),
    trial: undefined,
    attempt: 0,
    stream: 'stdout',
    rank: 0,
    logOpen: false,
    query: '',
    axis: 'step',
    smoothing: 0,
    hidden: new Set(),
    pinned: new Set(),
    hover: undefined,
  };
}

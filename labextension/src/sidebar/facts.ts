/** What a row says of an experiment, in words. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { duration, number } from '../../widgets/lib/format';
import type { Translator } from '../../widgets/lib/translator';
import type { Experiment } from '../api/experiments';
import { ENDED } from '../api/states';

const MINUTE_S = 60;
const HOUR_S = 60 * MINUTE_S;
const DAY_S = 24 * HOUR_S;

/** How many of its trials have ended. */
export function ended(experiment: Experiment): number {
  const counts = Object.entries(experiment.counts);
  return counts.reduce((sum, [state, many]) => sum + (ENDED.has(state) ? many : 0), 0);
}

/** Its best value, its trials, those that were lost, and its time. */
export function facts(experiment: Experiment, trans: Translator): string[] {
  const found: string[] = [];
  if (experiment.best && experiment.objective)
    found.push(`${experiment.objective.label} ${number(experiment.best.value)}`);
  found.push(`${ended(experiment)}/${experiment.trials}`);
  const lost = experiment.final ? (experiment.counts.LOST ?? 0) : 0;
  if (lost > 0) found.push(trans._n('%1 trial lost', '%1 trials lost', lost));
  if (experiment.eta_s !== null) found.push(trans.__('%1 left', duration(experiment.eta_s)));
  else if (experiment.final) found.push(trans.__('took %1', duration(experiment.took_s)));
  return found;
}

/** So much for each hour, to two places and never less: it is an upper limit. */
function ofHours(amount: number, time_s: number): number {
  return Math.ceil((100 * amount * time_s) / HOUR_S) / 100;
}

/**
 * Where a session is, for how long by now, and at most how many GPU hours and what cost: less where it has GPUs only
 * while a cell runs. `now_s` is of the last full minute.
 */
export function sessionFacts(experiment: Experiment, now_s: number, trans: Translator): string[] {
  const { backend, gpus, price, final } = experiment;
  const open_s = Math.max(now_s - experiment.created_s, 0);
  const most_s = final ? experiment.took_s : open_s + MINUTE_S;
  const found = [
    trans.__('session on %1', backend),
    final ? trans.__('took %1', duration(experiment.took_s)) : openFor(open_s, trans),
  ];
  if (gpus > 0) found.push(trans.__('up to %1 GPU h', number(ofHours(gpus, most_s))));
  if (price) found.push(trans.__('up to %1 %2', ofHours(price.hour, most_s).toFixed(2), price.currency));
  return found;
}

function openFor(open_s: number, trans: Translator): string {
  if (open_s < MINUTE_S) return trans.__('open for a minute');
  return trans.__('open for %1', duration(MINUTE_S * Math.floor(open_s / MINUTE_S)));
}

/** How long ago, and the day where that is not today or yesterday. */
export function age(created_s: number, now_s: number, trans: TranslationBundle): string {
  const passed_s = Math.max(now_s - created_s, 0);
  if (passed_s < MINUTE_S) return trans.__('just now');
  if (passed_s < HOUR_S) return trans.__('%1 min ago', Math.floor(passed_s / MINUTE_S));
  if (passed_s < DAY_S) return trans.__('%1 h ago', Math.floor(passed_s / HOUR_S));
  const days = Math.floor(passed_s / DAY_S);
  return `${trans._n('%1 day ago', '%1 days ago', days)}, ${day(created_s, now_s)}`;
}

/** A day, with its year where that is not this year. */
function day(at_s: number, now_s: number): string {
  const date = new Date(1000 * at_s);
  const isThisYear = date.getFullYear() === new Date(1000 * now_s).getFullYear();
  return date.toLocaleDateString(undefined, {
    day: 'numeric',
    month: 'short',
    ...(isThisYear ? {} : { year: 'numeric' }),
  });
}

/** A day and time to the minute. */
export function moment(at_s: number): string {
  return new Date(1000 * at_s).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });
}

export function stateName(state: string, trans: TranslationBundle): string {
  const names: Record<string, string> = {
    WAITING: trans.__('waiting'),
    RUNNING: trans.__('running'),
    STOPPING: trans.__('stopping'),
    SUCCEEDED: trans.__('succeeded'),
    FAILED: trans.__('failed'),
    CANCELLED: trans.__('cancelled'),
  };
  return names[state] ?? state.toLowerCase();
}

/** How numbers, durations and parameters read. */

import type { Json, Trial } from './frames';
import type { Translator } from './translator';

export function number(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : String(value);
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6)) {
    return value
      .toExponential(2)
      .replace(/\.?0+e/, 'e')
      .replace('e+', 'e');
  }
  return String(Number(value.toPrecision(4)));
}

export function duration(seconds: number): string {
  const whole = Math.max(seconds, 0);
  if (whole < 10) return `${whole.toFixed(1)} s`;
  if (whole < 60) return `${whole.toFixed(0)} s`;
  const minutes = Math.floor(Math.round(whole) / 60);
  if (minutes < 60) return withRest(`${minutes} min`, Math.round(whole) % 60, 's');
  return withRest(`${Math.floor(minutes / 60)} h`, minutes % 60, 'min');
}

/** A number of whole units, and what is left in the next smaller one. */
function withRest(text: string, rest: number, unit: string): string {
  return rest ? `${text} ${pad(rest)} ${unit}` : text;
}

function pad(value: number): string {
  return String(value).padStart(2, '0');
}

export function plain(value: Json | undefined): string {
  if (value === undefined || value === null) return value === null ? 'None' : '';
  if (typeof value === 'number') return number(value);
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'string') return value;
  return Array.isArray(value) ? JSON.stringify(value) : option(value);
}

/** An option of a nested choice: big(width=15 depth=1.796) */
function option(value: Record<string, Json>): string {
  const { _name, ...rest } = value;
  const name = plain(_name);
  const inner = Object.entries(rest).map(([key, item]) => `${key}=${plain(item)}`);
  return inner.length > 0 ? `${name}(${inner.join(' ')})` : name;
}

export function parameters(trial: Trial | undefined): string {
  return Object.entries(trial?.params ?? {})
    .map(([name, value]) => `${name}=${plain(value)}`)
    .join('  ');
}

/** PREPARING → Preparing, EARLY_STOPPED → Early stopped */
export function stateWord(state: string, trans: Translator): string {
  const words: Record<string, string> = {
    WAITING: trans.__('Waiting'),
    PREPARING: trans.__('Preparing'),
    RUNNING: trans.__('Running'),
    STOPPING: trans.__('Stopping'),
    SUCCEEDED: trans.__('Succeeded'),
    EARLY_STOPPED: trans.__('Early stopped'),
    FAILED: trans.__('Failed'),
    CANCELLED: trans.__('Cancelled'),
    PREEMPTED: trans.__('Preempted'),
    LOST: trans.__('Lost'),
  };
  return words[state] ?? state.toLowerCase();
}

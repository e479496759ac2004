/** The numbers written beside an axis. */

import { number } from '../lib/format';

export interface Tick {
  /** From 0 (bottom) to 1 (top). */
  position: number;
  text: string;
}

const ABOUT = 5;

/** Multiples of 1, 2 or 5 times a power of ten; of a single value, the value. */
export function linearTicks(low: number, high: number): Tick[] {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [{ position: 0.5, text: number(low) }];
  const rough = span / ABOUT;
  const power = 10 ** Math.floor(Math.log10(rough));
  const unit = [1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10;
  const step = unit * power;
  const first = Math.ceil(low / step);
  const last = Math.floor(high / step);
  const ticks: Tick[] = [];
  for (let i = first; i <= last; i++) {
    const value = Number((i * step).toPrecision(12)); // 3 * 0.1 is not 0.3
    ticks.push({ position: (value - low) / span, text: number(value) });
  }
  return ticks;
}

/** Powers of ten; where there are too few of them, also 2 and 5 times these; where too many, each n-th. */
export function logTicks(low: number, high: number): Tick[] {
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const every = Math.max(Math.ceil((last - first) / (2 * ABOUT)), 1);
  const factors = high / low < 300 ? [1, 2, 5] : [1];
  const ticks: Tick[] = [];
  for (let power = first; power <= last; power += every) {
    for (const factor of factors) {
      const value = Number(`${factor}e${power}`);
      if (value < low || value > high) continue;
      ticks.push({ position: Math.log(value / low) / Math.log(high / low), text: number(value) });
    }
  }
  return ticks;
}

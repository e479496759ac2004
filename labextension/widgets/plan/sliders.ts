/** The sliders that plan for another machine or other inputs: devices, bandwidth, memory, batch, sequence. */

import { h, setText } from '../lib/dom';
import type { Translator } from '../lib/translator';
import type { Machine, Session } from './session';
import { machineOf } from './session';
import { bytes, memoryText, seconds } from './format';
import { gapText } from './texts';

const GIB = 2 ** 30;
const BANDWIDTHS = [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16];
const MAX_DEVICES = 65_536;

interface Slider {
  root: HTMLElement;
  input: HTMLInputElement;
  shown: HTMLElement;
  key: keyof Machine;
  stops: number[];
  text: (value: number) => string;
}

export class Sliders {
  readonly root: HTMLElement;
  readonly #sliders: Slider[];
  readonly #note = h('span', { class: 'at-soft' });
  readonly #reset: HTMLButtonElement;

  constructor(readonly session: Session) {
    const { base, trans } = session;
    const { levels, devices } = base.cluster;
    const { batch, sequence } = session.machine;
    const tips = tipsOf(trans);
    this.#sliders = [
      this.#slider(trans.__('Devices'), tips.devices, 'devices', deviceStops(devices), String),
      this.#slider(trans.__('Bandwidth'), tips.bandwidth, 'bandwidth', BANDWIDTHS, (factor) => {
        const outer = levels.at(-1);
        const times = `× ${factor >= 1 ? factor : `1/${1 / factor}`}`;
        return outer ? `${times}, ${bytes(outer.bytes_per_s * factor)}/s ${outer.name}` : times;
      }),
      this.#slider(
        trans.__('Memory'),
        tips.memory_bytes,
        'memory_bytes',
        memoryStops(base.limit_bytes),
        memoryText,
      ),
      ...(batch ? [this.#slider(trans.__('Batch'), tips.batch, 'batch', inputStops(batch), String)] : []),
      ...(sequence
        ? [this.#slider(trans.__('Sequence'), tips.sequence, 'sequence', inputStops(sequence), String)]
        : []),
    ];
    this.#reset = h(
      'button',
      {
        type: 'button',
        class: 'at-button',
        onclick: () => {
          session.reset();
        },
      },
      trans.__('Back to the plan'),
    );
    const rows = h('div', { class: 'at-sliders' }, ...this.#sliders.map((slider) => slider.root));
    const line = h('div', { class: 'at-whatif' }, this.#note, this.#reset);
    this.root = h(
      'section',
      { class: 'at-section at-what-if', 'aria-label': trans.__('What if') },
      rows,
      line,
    );
  }

  update(): void {
    for (const { input, shown, key, stops, text } of this.#sliders) {
      const value = this.session.machine[key];
      const at = stops.indexOf(value);
      if (at >= 0 && input.value !== String(at)) input.value = String(at);
      setText(shown, text(value));
      if (input.getAttribute('aria-valuetext') !== text(value))
        input.setAttribute('aria-valuetext', text(value));
    }
    this.#reset.disabled = !this.session.changed;
    this.root.toggleAttribute('data-refused', this.session.refusal !== '');
    setText(this.#note, sentence(this.session));
  }

  #slider(
    name: string,
    tip: string,
    key: keyof Machine,
    stops: number[],
    text: (value: number) => string,
  ): Slider {
    const shown = h('b', { class: 'at-slider-value' });
    const input = h('input', { type: 'range', min: 0, max: stops.length - 1, step: 1, 'aria-label': name });
    input.value = String(stops.indexOf(this.session.machine[key]));
    input.addEventListener('input', () => {
      this.session.replan({ [key]: stops[Number(input.value)] ?? this.session.machine[key] });
    });
    // Otherwise the notebook handles the arrow keys.
    input.addEventListener('keydown', (event) => {
      event.stopPropagation();
    });
    return {
      root: h('label', { title: tip }, h('span', {}, name, ' ', shown), input),
      input,
      shown,
      key,
      stops,
      text,
    };
  }
}

/** The line below the sliders: how the plan for this machine compares, or why there is none. */
export function sentence(session: Session): string {
  const { view, base, refusal, trans } = session;
  if (session.waiting) return trans.__('Planning…');
  if (refusal) return `${stillShown(session)}: ${refusal}`;
  if (view === base) return trans.__('Move a slider to plan for another machine, batch or sequence.');
  return trans.__(
    '%1 per step, %2. %3; planned in %4 by the instant search.',
    seconds(view.cost.step_s),
    speedText(base.cost.step_s / view.cost.step_s, trans),
    gapText(view, trans),
    seconds(session.planned_s),
  );
}

function speedText(ratio: number, trans: Translator): string {
  return ratio >= 1
    ? trans.__('%1 × as fast', Number(ratio.toPrecision(3)))
    : trans.__('%1 × as slow', Number((1 / ratio).toPrecision(3)));
}

/** Which machine the page still shows while what the sliders ask for is refused. */
export function stillShown({ view, base, machine, refusal, trans }: Session): string {
  if (!refusal) return '';
  const { devices, device } = view.cluster;
  const shown = trans.__('%1 × %2 with %3 each', devices, device, memoryText(view.limit_bytes));
  const asked = trans.__('%1 × %2 with %3 each', machine.devices, device, memoryText(machine.memory_bytes));
  const first = machineOf(base);
  const others = [
    machine.bandwidth === 1 ? '' : trans.__('bandwidth × %1', machine.bandwidth),
    machine.batch === first.batch ? '' : trans.__('batch %1', machine.batch),
    machine.sequence === first.sequence ? '' : trans.__('sequence %1', machine.sequence),
  ];
  return trans.__('Still shows %1; %2 is refused', shown, [asked, ...others.filter(Boolean)].join(', '));
}

function tipsOf(trans: Translator): Record<keyof Machine, string> {
  return {
    devices: trans.__('How many devices the plan may use.'),
    bandwidth: trans.__('A factor on the speed of every link.'),
    memory_bytes: trans.__('How much of each device’s memory training may use.'),
    batch: trans.__('How many samples all devices together take in a step.'),
    sequence: trans.__('How many positions a sample has.'),
  };
}

/** From an eighth of the planned size to sixteen times it, by doubling. */
function inputStops(size: number): number[] {
  const stops = [size];
  for (let at = size; at % 2 === 0 && at > size / 8; ) stops.push((at /= 2));
  for (let at = size; at < size * 16; ) stops.push((at *= 2));
  return sorted(stops);
}

function deviceStops(devices: number): number[] {
  const most = Math.min(Math.max(devices * 16, 1024), MAX_DEVICES);
  const stops = [devices];
  for (let size = 1; size <= most; size *= 2) stops.push(size, ...(size >= 4 ? [size * 1.5] : []));
  return sorted(stops.filter((size) => size <= most));
}

function memoryStops(limit: number): number[] {
  const sizes = [2, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 120, 141, 192, 288].map(
    (size) => size * GIB,
  );
  return sorted([limit, ...sizes]);
}

function sorted(values: number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}

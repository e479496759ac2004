/** The sliders that plan for another machine: devices, bandwidth, memory. */

import { h, setText } from '../lib/dom';
import type { Machine, Session } from './session';
import { bytes, gapText, memoryText, seconds } from './format';

const GIB = 2 ** 30;
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
    const { base } = session;
    const { levels, devices } = base.cluster;
    this.#sliders = [
      this.#slider('Devices', 'devices', deviceStops(devices), String),
      this.#slider('Bandwidth', 'bandwidth', [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16], (factor) => {
        const outer = levels.at(-1);
        return `× ${factor >= 1 ? factor : `1/${1 / factor}`}${outer ? `, ${bytes(outer.bytes_per_s * factor)}/s ${outer.name}` : ''}`;
      }),
      this.#slider('Memory', 'memory_bytes', memoryStops(base.limit_bytes), memoryText),
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
      'Back to the plan',
    );
    const rows = h('div', { class: 'at-sliders' }, ...this.#sliders.map((slider) => slider.root));
    const line = h('div', { class: 'at-whatif' }, this.#note, this.#reset);
    this.root = h('section', { class: 'at-section at-what-if', 'aria-label': 'What if' }, rows, line);
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

  #slider(name: string, key: keyof Machine, stops: number[], text: (value: number) => string): Slider {
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
    return { root: h('label', {}, h('span', {}, name, ' ', shown), input), input, shown, key, stops, text };
  }
}

/** The line below the sliders: how the plan for this machine compares, or why there is none. */
export function sentence(session: Session): string {
  const { view, base, refusal } = session;
  if (session.waiting) return 'Planning…';
  if (refusal) return `${stillShown(session)}: ${refusal}`;
  if (view === base) return 'Move a slider to plan the split for another machine.';
  const ratio = base.cost.step_s / view.cost.step_s;
  const speed =
    ratio >= 1
      ? `${Number(ratio.toPrecision(3))} × as fast`
      : `${Number((1 / ratio).toPrecision(3))} × as slow`;
  const gap = gapText(view);
  return `${seconds(view.cost.step_s)} per step, ${speed}. ${gap}; planned in ${seconds(session.planned_s)} by the instant search.`;
}

/** Which machine the page still shows while the one of the sliders is refused. */
export function stillShown({ view, machine, refusal }: Session): string {
  if (!refusal) return '';
  const { devices, device } = view.cluster;
  const speed = machine.bandwidth === 1 ? '' : `, bandwidth × ${machine.bandwidth}`;
  const refused = `${machine.devices} × ${device} with ${memoryText(machine.memory_bytes)} each${speed}`;
  return `Still shows ${devices} × ${device} with ${memoryText(view.limit_bytes)} each; ${refused} is refused`;
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

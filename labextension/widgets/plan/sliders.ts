/** What if the machine were another: devices, bandwidth, memory. */

import { h, setText } from '../lib/dom';
import type { Session, Wish } from './session';
import { bytes, gapText, memoryText, seconds } from './words';

const GIB = 2 ** 30;
const MOST_DEVICES = 65_536;

interface Slider {
  root: HTMLElement;
  input: HTMLInputElement;
  say: HTMLElement;
  key: keyof Wish;
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
    for (const { input, say, key, stops, text } of this.#sliders) {
      const value = this.session.wish[key];
      const at = stops.indexOf(value);
      if (at >= 0 && input.value !== String(at)) input.value = String(at);
      setText(say, text(value));
      if (input.getAttribute('aria-valuetext') !== text(value))
        input.setAttribute('aria-valuetext', text(value));
    }
    this.#reset.disabled = !this.session.changed;
    this.root.toggleAttribute('data-refused', this.session.refusal !== '');
    setText(this.#note, sentence(this.session));
  }

  #slider(name: string, key: keyof Wish, stops: number[], text: (value: number) => string): Slider {
    const say = h('b', { class: 'at-said' });
    const input = h('input', { type: 'range', min: 0, max: stops.length - 1, step: 1, 'aria-label': name });
    input.value = String(stops.indexOf(this.session.wish[key]));
    input.addEventListener('input', () => {
      this.session.ask({ [key]: stops[Number(input.value)] ?? this.session.wish[key] });
    });
    // Else the notebook would take the arrow keys for its own.
    input.addEventListener('keydown', (event) => {
      event.stopPropagation();
    });
    return { root: h('label', {}, h('span', {}, name, ' ', say), input), input, say, key, stops, text };
  }
}

/** What the page tells of the machine that was asked for. */
export function sentence(session: Session): string {
  const { view, base, refusal } = session;
  if (session.waiting) return 'Planning…';
  if (refusal) return `${stillShown(session)}: ${refusal}`;
  if (view === base) return 'What if the machine were another? Slide, and the split is planned anew.';
  const ratio = base.cost.step_s / view.cost.step_s;
  const speed =
    ratio >= 1
      ? `${Number(ratio.toPrecision(3))} × as fast`
      : `${Number((1 / ratio).toPrecision(3))} × as slow`;
  const gap = gapText(view);
  return `${seconds(view.cost.step_s)} per step, ${speed}. ${gap}; planned anew in ${seconds(session.planned_s)} by the instant search.`;
}

/** What the picture is of while the machine asked for is refused. */
export function stillShown({ view, wish, refusal }: Session): string {
  if (!refusal) return '';
  const { devices, device } = view.cluster;
  const speed = wish.bandwidth === 1 ? '' : `, bandwidth × ${wish.bandwidth}`;
  const asked = `${wish.devices} × ${device} with ${memoryText(wish.memory_bytes)} each${speed}`;
  return `Still shows ${devices} × ${device} with ${memoryText(view.limit_bytes)} each; ${asked} is refused`;
}

function deviceStops(devices: number): number[] {
  const most = Math.min(Math.max(devices * 16, 1024), MOST_DEVICES);
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

/** The settings of the charts: how smooth, along what, between which limits; and their files. */

import type { Axis, Limits } from './choices';
import { axisAlong } from './choices';
import { h, setAttribute, setText } from './dom';
import { number } from './format';
import type { Session } from './session';
import type { Translator } from './translator';

/** What the settings ask of the charts. */
export interface Files {
  savePicture: () => void;
  savePoints: () => void;
}

export class ChartSettings {
  readonly root = h('div', { class: 'at-settings', role: 'group' });
  readonly #smoothing = h('input', { type: 'range', min: 0, max: 0.99, step: 0.01 });
  readonly #weight = h('output');
  readonly #axis = h('select');
  readonly #low = h('input', { type: 'number', step: 'any' });
  readonly #high = h('input', { type: 'number', step: 'any' });
  readonly #limits: HTMLElement;
  #metric: string | undefined;

  constructor(
    readonly session: Session,
    files: Files,
  ) {
    const { trans } = session;
    this.#label(trans);
    this.#limits = field(trans.__('Y axis'), this.#low, trans.__('to'), this.#high);
    const picture = button('PNG', trans.__('Save the picture'), files.savePicture);
    const points = button('CSV', trans.__('Save the points'), files.savePoints);
    this.root.append(
      field(trans.__('Smoothing'), this.#smoothing, this.#weight),
      ...(session.names.hasSteps ? [field(trans.__('X axis'), this.#axis)] : []),
      this.#limits,
      h('span', { class: 'at-tools' }, picture, points),
    );
    this.#listen();
  }

  /** `metric` and `span` are those of the chart that limits hold for; none where several are shown. */
  update(metric: string | undefined, span: [number, number] | undefined): void {
    const { choices, trans } = this.session;
    const { settings, smoothing, axis } = choices;
    this.root.hidden = !settings;
    this.#smoothing.value = String(smoothing);
    setText(this.#weight, smoothing === 0 ? trans.__('off') : smoothing.toFixed(2));
    this.#updateAxes();
    this.#axis.value = axis;
    this.#limits.hidden = metric === undefined;
    this.#low.placeholder = span ? number(span[0]) : '';
    this.#high.placeholder = span ? number(span[1]) : '';
    if (metric === this.#metric) return;
    this.#metric = metric;
    const [low, high] = metric === undefined ? [] : this.session.limits(metric);
    this.#low.value = low === undefined ? '' : String(low);
    this.#high.value = high === undefined ? '' : String(high);
  }

  /** A metric that is reported along, such as the epoch, may be the axis of the others. */
  #updateAxes(): void {
    const { trans } = this.session;
    const metrics = this.session.metrics();
    const shape = JSON.stringify(metrics);
    if (shape === this.#axis.dataset.metrics) return;
    this.#axis.dataset.metrics = shape;
    const own = metrics.length > 1 ? metrics.map((name): [Axis, string] => [axisAlong(name), name]) : [];
    const group = h('optgroup', { label: trans.__('Metrics'), hidden: own.length === 0 }, ...own.map(option));
    this.#axis.replaceChildren(...axes(trans).map(option), group);
  }

  #label(trans: Translator): void {
    setAttribute(this.root, 'aria-label', trans.__('Settings of the charts'));
    setAttribute(this.#smoothing, 'aria-label', trans.__('Smoothing'));
    setAttribute(this.#axis, 'aria-label', trans.__('Along the x axis'));
    setAttribute(this.#low, 'aria-label', trans.__('Minimum of the y axis'));
    setAttribute(this.#high, 'aria-label', trans.__('Maximum of the y axis'));
  }

  #listen(): void {
    this.#smoothing.addEventListener('input', () => {
      this.session.choose({ smoothing: Number(this.#smoothing.value) });
    });
    this.#axis.addEventListener('change', () => {
      this.session.choose({ axis: this.#axis.value as Axis });
    });
    for (const input of [this.#low, this.#high]) {
      input.addEventListener('input', () => {
        const limits: Limits = [valueOf(this.#low), valueOf(this.#high)];
        if (this.#metric !== undefined) this.session.limit(this.#metric, limits);
      });
    }
  }
}

function valueOf(input: HTMLInputElement): number | undefined {
  return Number.isNaN(input.valueAsNumber) ? undefined : input.valueAsNumber;
}

function axes(trans: Translator): [Axis, string][] {
  return [
    ['step', trans.__('Step')],
    ['trial', trans.__('Time of the trial')],
    ['clock', trans.__('Time of day')],
  ];
}

function option([value, name]: [Axis, string]): HTMLElement {
  return h('option', { value }, name);
}

function field(name: string, ...parts: (Node | string)[]): HTMLElement {
  return h('span', { class: 'at-field' }, h('span', { class: 'at-soft' }, name), ...parts);
}

function button(text: string, title: string, onclick: () => void): HTMLButtonElement {
  return h(
    'button',
    { type: 'button', class: 'at-button', title, 'aria-label': `${title}: ${text}`, onclick },
    text,
  );
}

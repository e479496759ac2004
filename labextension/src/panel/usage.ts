/** What the trial that is looked at uses of its node over time: CPU, memory and GPUs, a curve per attempt. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { ALL_METRICS } from '../../widgets/lib/choices';
import { drawLoop } from '../../widgets/lib/draw_loop';
import { h, setAttribute, setText } from '../../widgets/lib/dom';
import { stateWord } from '../../widgets/lib/format';
import { ACTIVE } from '../../widgets/lib/frames';
import type { Trial } from '../../widgets/lib/frames';
import { ChartPanel } from '../../widgets/lib/panel';
import { Session } from '../../widgets/lib/session';
import { showUsage } from '../api/experiment';
import type { AttemptUsage } from '../api/experiment';
import { CurvesWire, NO_EXPERIMENT, NO_TRIAL } from '../home/curves_wire';
import { usageCurves } from './usage_curves';

const PERIOD_MS = 5000;

export class Usage {
  readonly root: HTMLElement;
  readonly #heading = h('h4', { class: 'at-heading' });
  readonly #trial = h('input', { type: 'number', min: 1, step: 1, class: 'jp-Autotrain-trial' });
  readonly #message = h('p', { class: 'at-soft', role: 'status' });
  readonly #wire = new CurvesWire();
  readonly #session: Session;
  readonly #charts: ChartPanel;
  readonly #endDrawing: () => void;
  /** The trial and its state as they were asked for last. */
  #asked = '';
  #askedMs = -PERIOD_MS;
  #version = 0;

  /** @param panel The session whose trials are meant. */
  constructor(
    private readonly id: string,
    private readonly panel: Session,
    private readonly trans: TranslationBundle,
  ) {
    this.#session = new Session(this.#wire, trans, {
      noun: 'attempt',
      nameOf: (number) => trans.__('attempt %1', number),
      counted: (amount) => trans._n('%1 attempt', '%1 attempts', amount),
      hasSteps: false,
    });
    this.#session.choose({ axis: 'trial', metric: ALL_METRICS });
    this.#charts = new ChartPanel(this.#session);
    const choice = h('label', { class: 'at-field' }, trans.__('Trial'), this.#trial);
    const head = h('div', { class: 'at-row' }, this.#heading, h('div', { class: 'at-tools' }, choice));
    this.root = h('div', { class: 'jp-Autotrain-page' }, head, this.#message, this.#charts.root);
    this.#trial.addEventListener('change', () => {
      const trial = this.#trial.valueAsNumber;
      if (panel.trials.has(trial)) panel.choose({ trial });
    });
    this.#endDrawing = drawLoop(this.#session, [this.#charts]);
  }

  destroy(): void {
    this.#version += 1;
    this.#endDrawing();
    this.#charts.destroy();
    this.#session.close();
  }

  /** Where it is seen, ask at a low rate as long as the trial goes on, and once after its end. */
  update(): void {
    if (this.root.offsetParent === null) return;
    const trial = this.panel.focus();
    this.#updateHead(trial);
    if (!trial) return;
    const asked = `${trial.number} ${trial.attempt} ${trial.state}`;
    const isDue = ACTIVE.has(trial.state) && performance.now() - this.#askedMs >= PERIOD_MS;
    if (asked === this.#asked && !isDue) return;
    if (!this.#asked.startsWith(`${trial.number} `)) this.#forget();
    this.#asked = asked;
    this.#askedMs = performance.now();
    void this.#load(trial);
  }

  #updateHead(trial: Trial | undefined): void {
    const { trans, panel } = this;
    const state = trial ? stateWord(trial.state, trans) : '';
    setText(
      this.#heading,
      trial
        ? `${trans.__('Usage of trial %1', trial.number)} · ${state}`
        : trans.__('No trial has begun yet.'),
    );
    setAttribute(this.#trial, 'max', panel.trials.size);
    if (document.activeElement !== this.#trial) this.#trial.value = String(trial?.number ?? '');
  }

  /** What is shown is another trial's. */
  #forget(): void {
    this.#session.series.metrics.clear();
    this.#session.trials.clear();
    setText(this.#message, this.trans.__('Loading …'));
    this.#tell([]);
  }

  async #load(trial: Trial): Promise<void> {
    const version = ++this.#version;
    let message = '';
    try {
      const attempts = await showUsage(this.id, trial.number);
      if (version !== this.#version) return;
      if (attempts.length === 0) message = this.#nothing(trial);
      this.#session.series.metrics.clear(); // their names have units, which may change
      this.#tell(attempts);
    } catch (error) {
      if (version !== this.#version) return;
      message = error instanceof Error ? error.message : String(error);
    }
    setText(this.#message, message);
    this.#message.hidden = message === '';
  }

  #nothing(trial: Trial): string {
    return ACTIVE.has(trial.state)
      ? this.trans.__('No measurements yet.')
      : this.trans.__('No usage was measured for this trial.');
  }

  #tell(attempts: readonly AttemptUsage[]): void {
    const { experiment } = this.panel;
    const name = `${experiment?.name ?? ''}-trial-${this.panel.focus()?.number ?? 0}-usage`;
    const trials = attempts.map(({ attempt }) => ({
      ...NO_TRIAL,
      number: attempt,
      state: 'RUNNING',
      started_s: 0,
    }));
    const told = { ...NO_EXPERIMENT, name, trials: trials.length, now_s: 0 };
    this.#wire.tell(told, trials, usageCurves(attempts, this.trans));
  }
}

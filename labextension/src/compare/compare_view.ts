/** The comparison: results, curves over each other, what differs, and the code of two. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { h, setText } from '../../widgets/lib/dom';
import { drawLoop } from '../../widgets/lib/draw_loop';
import type { Part } from '../../widgets/lib/draw_loop';
import { ChartPanel } from '../../widgets/lib/panel';
import { CodePair } from './code_pair';
import { DifferenceTable } from './difference_table';
import type { RunsModel } from './runs_model';
import { RunsTable } from './runs_table';

export interface CompareViewOptions {
  model: RunsModel;
  trans: TranslationBundle;
  open: (id: string) => void;
}

export class CompareView {
  readonly root: HTMLElement;
  readonly #message = h('p', { class: 'at-receipt', role: 'status' });
  readonly #charts: ChartPanel;
  readonly #parts: (Part & { root: HTMLElement })[];
  readonly #endDrawing: () => void;

  constructor(readonly options: CompareViewOptions) {
    const { model, trans } = options;
    const count = model.runs.length;
    const title = trans._n('%1 experiment', 'Comparison of %1 experiments', count);
    this.#charts = new ChartPanel(model.session);
    this.#parts = [
      new RunsTable(options),
      this.#charts,
      new DifferenceTable(model, trans),
      new CodePair(model, trans),
    ];
    this.root = h('article', { class: 'autotrain at-compare', 'aria-label': title });
    this.root.append(
      h('h3', { class: 'at-name' }, title),
      this.#message,
      ...this.#parts.map(({ root }) => root),
    );
    this.#endDrawing = drawLoop(model.session, [{ update: this.#updateMessage }, ...this.#parts]);
  }

  destroy(): void {
    this.#endDrawing();
    this.#charts.destroy();
    this.root.remove();
  }

  readonly #updateMessage = (): void => {
    const { model, trans } = this.options;
    setText(this.#message, model.isConnected ? '' : trans.__('The server does not answer. Trying again…'));
  };
}

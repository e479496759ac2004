/** Puts a badge on each cell of a notebook whose output is an experiment's. */

import { CodeCell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { PanelLayout } from '@lumino/widgets';
import { eachChange } from '../home/model_signal';
import { Badge } from './badge';
import type { RunStates } from './run_states';
import { runsIn } from './stored_run';
import type { StoredRun } from './stored_run';

interface Shown {
  badge: Badge;
  run: StoredRun;
}

export class NotebookBadges {
  readonly #shown = new Map<CodeCell, Shown>();
  readonly #known = new WeakSet<CodeCell>();
  readonly #endDrawing: () => void;
  #timer = 0;

  constructor(
    private readonly panel: NotebookPanel,
    private readonly states: RunStates,
    private readonly trans: TranslationBundle,
    private readonly open: (id: string) => void,
  ) {
    this.#endDrawing = eachChange(() => {
      this.#draw();
    }, states.changed);
    panel.content.modelContentChanged.connect(this.#soon, this);
    panel.content.modelChanged.connect(this.#soon, this);
    panel.disposed.connect(this.#end, this);
    this.#soon();
  }

  #soon(): void {
    window.clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => {
      this.#update();
    });
  }

  #update(): void {
    if (this.panel.isDisposed) return;
    const cells = new Set(this.panel.content.widgets.filter((cell) => cell instanceof CodeCell));
    for (const cell of [...this.#shown.keys()]) if (!cells.has(cell)) this.#remove(cell);
    for (const cell of cells) this.#updateCell(cell);
  }

  #updateCell(cell: CodeCell): void {
    if (!this.#known.has(cell)) {
      this.#known.add(cell);
      eachChange(() => {
        this.#soon();
      }, cell.model.outputs.changed);
      void cell.ready.then(() => {
        this.#soon();
      });
    }
    const run = runsIn(outputsOf(cell)).at(-1);
    if (this.#shown.get(cell)?.run.id !== run?.id) this.#remove(cell);
    if (run && !this.#shown.has(cell)) this.#add(cell, run);
  }

  #add(cell: CodeCell, run: StoredRun): void {
    const input = cell.inputArea;
    if (!(input?.layout instanceof PanelLayout)) return; // not drawn yet: it comes again when the cell is ready
    const badge = new Badge(this.trans, this.open);
    input.addClass('jp-Autotrain-has-badge');
    input.layout.addWidget(badge);
    this.#shown.set(cell, { badge, run });
    badge.display(this.states.get(run.id) ?? run);
    this.states.watch(run.id);
  }

  #remove(cell: CodeCell): void {
    const shown = this.#shown.get(cell);
    if (!shown) return;
    this.#shown.delete(cell);
    cell.inputArea?.removeClass('jp-Autotrain-has-badge');
    shown.badge.dispose();
    this.states.unwatch(shown.run.id);
  }

  #draw(): void {
    for (const { badge, run } of this.#shown.values()) badge.display(this.states.get(run.id) ?? run);
  }

  #end(): void {
    window.clearTimeout(this.#timer);
    this.#endDrawing();
    for (const cell of [...this.#shown.keys()]) this.#remove(cell);
  }
}

/** The bundles of MIME types that a cell shows. */
export function outputsOf(cell: CodeCell): Record<string, unknown>[] {
  const { outputs } = cell.model;
  return Array.from({ length: outputs.length }, (_, i) => ({ ...outputs.get(i).data }));
}

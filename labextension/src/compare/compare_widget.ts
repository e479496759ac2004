/** The comparison as a widget of JupyterLab: it follows the home while it is shown. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import type { Changes } from '../home/changes';
import { CompareView } from './compare_view';
import { RunsModel } from './runs_model';

export interface CompareWidgetOptions {
  ids: readonly string[];
  changes: Changes;
  trans: TranslationBundle;
  open: (id: string) => void;
}

export class CompareWidget extends Widget {
  readonly ids: readonly string[];
  readonly #model: RunsModel;
  readonly #view: CompareView;

  constructor({ ids, changes, trans, open }: CompareWidgetOptions) {
    super();
    this.ids = ids;
    this.#model = new RunsModel(ids, changes, trans);
    this.#view = new CompareView({ model: this.#model, trans, open });
    this.addClass('jp-AutotrainCompare');
    this.title.label = trans.__('Compare %1', ids.length);
    this.node.append(this.#view.root);
    this.node.tabIndex = -1;
  }

  override dispose(): void {
    if (this.isDisposed) return;
    this.#view.destroy();
    this.#model.dispose();
    super.dispose();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    if (this.isVisible) void this.#model.follow();
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    void this.#model.follow();
  }

  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this.#model.rest();
  }

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this.node.focus();
  }
}

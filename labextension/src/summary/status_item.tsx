/** How many experiments run and wait, in the status bar; opens the sidebar. */

import { ReactWidget } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { eachChange } from '../home/model_signal';
import type { SummaryModel } from './summary_model';

export class StatusItem extends ReactWidget {
  constructor(
    private readonly model: SummaryModel,
    private readonly trans: TranslationBundle,
    private readonly onOpen: () => void,
  ) {
    super();
    this.addClass('jp-Autotrain-status');
    eachChange(() => {
      this.update();
    }, model.changed);
  }

  get isActive(): boolean {
    return this.model.groups.running + this.model.groups.queued > 0;
  }

  protected override render(): React.JSX.Element {
    const { running, queued } = this.model.groups;
    const text = this.trans.__('%1 running, %2 queued', running, queued);
    return (
      <button title={this.trans.__('Show experiments')} onClick={this.onOpen}>
        {text}
      </button>
    );
  }
}

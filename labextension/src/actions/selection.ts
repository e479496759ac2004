/** The experiments that are selected where experiments are listed: what a command without ids is about. */

import { Token } from '@lumino/coreutils';
import { ModelSignal } from '../home/model_signal';
import type { CountedSignal } from '../home/model_signal';
import type { Experiment } from '../api/experiments';

/** A list in which experiments are selected; of several that are open, the one that was used last counts. */
export interface SelectingList {
  /** Begin to edit the tags and the note of an experiment, where it is listed. */
  edit(id: string): void;
}

export class Selection {
  private chosen: readonly Experiment[] = [];
  private list: SelectingList | null = null;
  private readonly signal = new ModelSignal(this);

  get changed(): CountedSignal {
    return this.signal;
  }

  get experiments(): readonly Experiment[] {
    return this.chosen;
  }

  /** A person has selected them in this list. */
  set(experiments: readonly Experiment[], list: SelectingList): void {
    this.list = list;
    this.chosen = experiments;
    this.signal.emit();
  }

  /** They are loaded anew, or gone. */
  update(experiments: readonly Experiment[], list: SelectingList): void {
    if (this.list === list) this.set(experiments, list);
  }

  edit(id: string): void {
    this.list?.edit(id);
  }
}

export const ISelection = new Token<Selection>('jupyter-autotrain:ISelection', 'The selected experiments.');

/** The experiments that are selected where experiments are listed: what a command without ids is about. */

import { Token } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import type { Experiment } from '../api/experiments';

export class Selection {
  private chosen: readonly Experiment[] = [];
  private readonly signal = new Signal<this, void>(this);

  get changed(): ISignal<this, void> {
    return this.signal;
  }

  get experiments(): readonly Experiment[] {
    return this.chosen;
  }

  set(experiments: readonly Experiment[]): void {
    this.chosen = experiments;
    this.signal.emit();
  }
}

export const ISelection = new Token<Selection>('jupyter-autotrain:ISelection', 'The selected experiments.');

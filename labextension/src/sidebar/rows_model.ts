/** The rows of a list of experiments: which are chosen, and what is edited of one. */

import type { Selection, SelectingList } from '../actions/selection';
import type { Experiment } from '../api/experiments';
import { ModelSignal } from '../home/model_signal';
import type { CountedSignal } from '../home/model_signal';
import { NOTHING, kept, selected } from './picked';
import type { Picked } from './picked';

/** What is typed of the tags and the note of an experiment. */
export interface Draft {
  readonly id: string;
  tags: string;
  note: string;
}

export abstract class RowsModel implements SelectingList {
  picked: Picked = NOTHING;
  /** What is edited; kept here because a row that moves to another section is a new element. */
  draft: Draft | null = null;

  protected readonly signal = new ModelSignal(this);
  private experiments = new Map<string, Experiment>();

  constructor(private readonly selection: Selection) {}

  get changed(): CountedSignal {
    return this.signal;
  }

  /** The ids of the rows that are seen, from the top. */
  abstract get rows(): string[];

  /** The row that Tab comes to. */
  get entry(): string {
    const rows = this.rows;
    return rows.includes(this.picked.focused) ? this.picked.focused : (rows[0] ?? '');
  }

  pick(picked: Picked): void {
    this.picked = picked;
    this.selection.set(this.selected(), this);
    this.signal.emit();
  }

  /** Begin to edit the tags and the note of an experiment. */
  edit(id: string): void {
    const { tags, note } = this.experiments.get(id) ?? { tags: [], note: '' };
    this.draft = { id, tags: tags.join(', '), note };
    this.signal.emit();
  }

  endEdit(): void {
    this.draft = null;
    this.signal.emit();
  }

  /** Take what was loaded; what is no longer listed is no longer chosen. */
  protected takeRows(experiments: readonly Experiment[]): void {
    this.experiments = new Map(experiments.map((experiment) => [experiment.id, experiment]));
    this.picked = kept(this.picked, new Set(this.experiments.keys()));
    this.selection.update(this.selected(), this);
    this.signal.emit();
  }

  private selected(): Experiment[] {
    const found = selected(this.picked).map((id) => this.experiments.get(id));
    return found.filter((experiment) => experiment !== undefined);
  }
}

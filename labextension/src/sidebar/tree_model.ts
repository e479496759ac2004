/** The state of the tree: its sections, which are folded, what is chosen, and what is edited. */

import { ModelSignal } from '../home/model_signal';
import type { CountedSignal } from '../home/model_signal';
import type { Selection } from '../actions/selection';
import type { Experiment, ExperimentList } from '../api/experiments';
import { NOTHING, kept } from './picked';
import type { Picked } from './picked';
import { sections, visibleRows } from './sections';
import type { Grouping, Section } from './sections';

/** What is typed of the tags and the note of an experiment. */
export interface Draft {
  readonly id: string;
  tags: string;
  note: string;
}

export class TreeModel {
  picked: Picked = NOTHING;
  /** What is edited; kept here because a row that moves to another section is a new element. */
  draft: Draft | null = null;
  folded: ReadonlySet<string> = new Set<string>();

  private experiments = new Map<string, Experiment>();
  private shown: readonly Section[] = [];
  private readonly signal = new ModelSignal(this);

  constructor(private readonly selection: Selection) {}

  get changed(): CountedSignal {
    return this.signal;
  }

  get sections(): readonly Section[] {
    return this.shown;
  }

  get rows(): string[] {
    return visibleRows(this.shown, this.folded);
  }

  /** The row that Tab comes to. */
  get entry(): string {
    const rows = this.rows;
    return rows.includes(this.picked.focused) ? this.picked.focused : (rows[0] ?? '');
  }

  /** Take what was loaded; what is no longer listed is no longer chosen. */
  take(list: ExperimentList, grouping: Grouping): void {
    this.experiments = new Map(list.experiments.map((experiment) => [experiment.id, experiment]));
    this.shown = sections(list.experiments, grouping);
    this.pick(kept(this.picked, new Set(this.experiments.keys())));
  }

  pick(picked: Picked): void {
    this.picked = picked;
    const chosen = picked.chosen.map((id) => this.experiments.get(id));
    this.selection.set(chosen.filter((experiment) => experiment !== undefined));
    this.signal.emit();
  }

  fold(key: string, isFolded: boolean): void {
    const folded = new Set(this.folded);
    if (isFolded) folded.add(key);
    else folded.delete(key);
    this.folded = folded;
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

  /** The section that an experiment is in. */
  sectionOf(id: string): Section | undefined {
    return this.shown.find((section) => section.experiments.some((experiment) => experiment.id === id));
  }
}

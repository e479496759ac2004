/** The state of the tree: its sections, which are folded, and whether the box of the filter is there. */

import type { ExperimentList } from '../api/experiments';
import { RowsModel } from './rows_model';
import { sections, visibleRows } from './sections';
import type { Grouping, Section } from './sections';

export class TreeModel extends RowsModel {
  folded: ReadonlySet<string> = new Set<string>();
  isFilterOpen = false;

  private shown: readonly Section[] = [];

  get sections(): readonly Section[] {
    return this.shown;
  }

  override get rows(): string[] {
    return visibleRows(this.shown, this.folded);
  }

  take(list: ExperimentList, grouping: Grouping): void {
    this.shown = sections(list.experiments, grouping);
    this.takeRows(list.experiments);
  }

  fold(key: string, isFolded: boolean): void {
    const folded = new Set(this.folded);
    if (isFolded) folded.add(key);
    else folded.delete(key);
    this.folded = folded;
    this.signal.emit();
  }

  openFilter(isOpen: boolean): void {
    this.isFilterOpen = isOpen;
    this.signal.emit();
  }

  /** The section that an experiment is in. */
  sectionOf(id: string): Section | undefined {
    return this.shown.find((section) => section.experiments.some((experiment) => experiment.id === id));
  }
}

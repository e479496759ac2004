/** Asks the server what is wrong with a header, when nobody has typed for a moment. */

import { ViewPlugin } from '@codemirror/view';
import type { EditorView, ViewUpdate } from '@codemirror/view';
import type { Extension } from '@codemirror/state';
import { headerFaults, MOST_CHARACTERS } from '../api/header';
import type { Fault } from '../api/header';
import { faultField, setFaults } from './fault_marks';
import { headerEndsWithin, isExperiment } from './header_lines';

const PAUSE_MS = 500;

/** The path of the notebook that an editor is in; undefined for an editor in none. */
export type PathOf = (editor: HTMLElement) => string | undefined;

class Checking {
  #timer = 0;
  #isDestroyed = false;

  constructor(
    private readonly view: EditorView,
    private readonly pathOf: PathOf,
  ) {
    this.#soon();
  }

  update(update: ViewUpdate): void {
    if (update.docChanged) this.#soon();
  }

  destroy(): void {
    this.#isDestroyed = true;
    window.clearTimeout(this.#timer);
  }

  #soon(): void {
    window.clearTimeout(this.#timer);
    const has = this.view.state.field(faultField).faults.length > 0;
    if (!has && !isExperiment(this.view.state.sliceDoc(0, 20))) return;
    this.#timer = window.setTimeout(() => {
      void this.#check();
    }, PAUSE_MS);
  }

  async #check(): Promise<void> {
    const { doc } = this.view.state;
    const faults = await this.#ask(doc.toString());
    if (this.#isDestroyed || this.view.state.doc !== doc) return; // what was typed since is asked for itself
    if (faults.length === 0 && this.view.state.field(faultField).faults.length === 0) return;
    this.view.dispatch({ effects: setFaults.of(faults) });
  }

  async #ask(text: string): Promise<Fault[]> {
    const path = this.pathOf(this.view.dom);
    if (path === undefined || !isExperiment(text)) return [];
    if (!headerEndsWithin(text, MOST_CHARACTERS)) return []; // half a header has faults that the whole has not
    try {
      return await headerFaults(text, path);
    } catch {
      return []; // without the server's extension a header is checked when the cell is run
    }
  }
}

export function checking(pathOf: PathOf): Extension {
  return ViewPlugin.define((view) => new Checking(view, pathOf));
}

/** Colours the header of a cell as what it is, not as Python. */

import { Prec, RangeSetBuilder } from '@codemirror/state';
import type { Extension } from '@codemirror/state';
import { Decoration, ViewPlugin } from '@codemirror/view';
import type { DecorationSet, EditorView, ViewUpdate } from '@codemirror/view';
import { headerTokens, isExperiment } from './header_lines';

class Highlighting {
  decorations: DecorationSet;

  constructor(view: EditorView) {
    this.decorations = decorate(view);
  }

  update(update: ViewUpdate): void {
    if (update.docChanged) this.decorations = decorate(update.view);
  }
}

function decorate({ state }: EditorView): DecorationSet {
  if (!isExperiment(state.sliceDoc(0, 20))) return Decoration.none;
  const builder = new RangeSetBuilder<Decoration>();
  for (const { from, to, kind } of headerTokens(state.doc.toString())) {
    builder.add(from, to, Decoration.mark({ class: `jp-Autotrain-header jp-Autotrain-header-${kind}` }));
  }
  return builder.finish();
}

/** Of the lowest precedence: its marks lie inside those of Python, so that their colour is seen. */
export const highlighting: Extension = Prec.lowest(
  ViewPlugin.fromClass(Highlighting, { decorations: (plugin) => plugin.decorations }),
);

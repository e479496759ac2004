/** Tab offers the keys of a header also where nothing is typed yet: there JupyterLab would indent. */

import { Prec } from '@codemirror/state';
import type { EditorState, Extension } from '@codemirror/state';
import { keymap } from '@codemirror/view';
import { isEmptyInHeader, isExperiment } from './header_lines';

/** @param complete Opens the completer at the cursor; gives whether there is one. */
export function tabKey(complete: () => boolean): Extension {
  return Prec.highest(keymap.of([{ key: 'Tab', run: ({ state }) => isOnEmptyRow(state) && complete() }]));
}

function isOnEmptyRow({ doc, selection }: EditorState): boolean {
  const { empty, head } = selection.main;
  if (!empty || !isExperiment(doc.line(1).text)) return false;
  const { number, to } = doc.lineAt(head);
  return isEmptyInHeader(doc.sliceString(0, to).split('\n'), number - 1);
}

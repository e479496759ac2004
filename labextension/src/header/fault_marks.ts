/** What is wrong in the header of a cell: underlined, said where the pointer rests, and listed below the cell's text. */

import { StateEffect, StateField } from '@codemirror/state';
import type { EditorState, Extension } from '@codemirror/state';
import { Decoration, EditorView, hoverTooltip, showPanel } from '@codemirror/view';
import type { DecorationSet, Panel } from '@codemirror/view';
import type { TranslationBundle } from '@jupyterlab/translation';
import { h } from '../../widgets/lib/dom';
import type { Fault } from '../api/header';
import { faultText, shownFaults } from './fault_texts';

export const setFaults = StateEffect.define<Fault[]>();

interface Found {
  faults: Fault[];
  marks: DecorationSet;
}

const NONE: Found = { faults: [], marks: Decoration.none };
const MARK = Decoration.mark({ class: 'jp-Autotrain-fault' });

export const faultField = StateField.define<Found>({
  create: () => NONE,
  update(found, transaction) {
    for (const effect of transaction.effects) {
      if (effect.is(setFaults))
        return { faults: effect.value, marks: marksOf(transaction.state, effect.value) };
    }
    return transaction.docChanged ? { ...found, marks: found.marks.map(transaction.changes) } : found;
  },
  provide: (field) => EditorView.decorations.from(field, ({ marks }) => marks),
});

/** The text of each faulty line, without what it is indented by. */
function marksOf(state: EditorState, faults: Fault[]): DecorationSet {
  const lines = [...new Set(faults.map(({ line }) => line))].filter((line) => line <= state.doc.lines);
  const ranges = lines.flatMap((number) => {
    const { from, text } = state.doc.line(number);
    const begin = from + text.length - text.trimStart().length;
    const end = from + text.trimEnd().length;
    return begin < end ? [MARK.range(begin, end)] : [];
  });
  return Decoration.set(ranges, true);
}

export function faultMarks(trans: TranslationBundle): Extension {
  const panel = showPanel.from(faultField, ({ faults }) => {
    return faults.length > 0 ? () => listOf(faults, trans) : null;
  });
  const tooltip = hoverTooltip((view, position) => {
    const { number, from, to } = view.state.doc.lineAt(position);
    const here = view.state.field(faultField).faults.filter(({ line }) => line === number);
    if (here.length === 0) return null;
    const create = (): { dom: HTMLElement } => ({ dom: paragraphs(here) });
    return { pos: from, end: to, above: true, create };
  });
  return [faultField, panel, tooltip];
}

function paragraphs(faults: Fault[]): HTMLElement {
  return h(
    'div',
    { class: 'jp-Autotrain-fault-tip' },
    ...faults.map((fault) => h('p', {}, faultText(fault))),
  );
}

function listOf(faults: Fault[], trans: TranslationBundle): Panel {
  const texts = shownFaults(faults).map((fault) => {
    return h('li', {}, h('b', {}, trans.__('Line %1', fault.line)), ' ', faultText(fault));
  });
  const left = faults.length - texts.length;
  if (left > 0) texts.push(h('li', {}, trans._n('and %1 more', 'and %1 more', left)));
  const list = h('ul', { 'aria-label': trans.__('Problems in the header') }, ...texts);
  return { dom: h('div', { class: 'jp-Autotrain-faults', role: 'status' }, list) };
}

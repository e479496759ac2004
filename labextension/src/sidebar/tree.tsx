/** The tree of experiments: arrows, ranges and folding as in every tree; what an action does is in the commands. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { ExperimentList, Group } from '../api/experiments';
import { Item } from './item';
import type { Picked } from './picked';
import { extended, isSection, neighbour, only, toggled } from './picked';
import { fileName } from './sections';
import type { Grouping, Section } from './sections';
import type { TreeModel } from './tree_model';

interface Props {
  model: TreeModel;
  list: ExperimentList;
  grouping: Grouping;
  trans: TranslationBundle;
  onOpen: (id: string) => void;
  onTag: (tag: string) => void;
}

export function Tree(props: Props): React.JSX.Element {
  const { model, trans } = props;
  const root = React.useRef<HTMLDivElement>(null);
  const isPointed = React.useRef(false);
  const focused = useKeptFocus(root, model);
  const focus = React.useCallback((id: string) => {
    rowOf(root.current, id)?.focus();
  }, []);
  const onEdited = React.useCallback(() => {
    const id = model.draft?.id ?? '';
    model.endEdit();
    focus(id);
  }, [model, focus]);
  return (
    <div
      ref={root}
      className="jp-Autotrain-tree"
      role="tree"
      aria-label={trans.__('Experiments')}
      aria-multiselectable="true"
      onKeyDown={(event) => {
        if (onKey(event, model)) focus(model.picked.focused);
      }}
      onMouseDown={() => {
        isPointed.current = true;
        window.setTimeout(() => {
          isPointed.current = false;
        });
      }}
      onFocus={(event) => {
        focused.current = true;
        if (!isPointed.current) onFocus(event, model);
      }}
      onBlur={() => {
        focused.current = false;
      }}
      onClick={(event) => {
        onClick(event, props);
      }}
      onContextMenu={(event) => {
        const id = idAt(event.target);
        if (id && !model.picked.chosen.includes(id)) model.pick(only(id));
      }}
    >
      {model.sections.map((section) => (
        <Branch key={section.key} section={section} onEdited={onEdited} {...props} />
      ))}
    </div>
  );
}

/** A row that moves to another section is a new element: it takes over the focus of the one that is gone. */
function useKeptFocus(root: React.RefObject<HTMLElement>, model: TreeModel): React.MutableRefObject<boolean> {
  const hasFocus = React.useRef(false);
  React.useLayoutEffect(() => {
    if (hasFocus.current && !root.current?.contains(document.activeElement))
      rowOf(root.current, model.entry)?.focus();
  });
  return hasFocus;
}

function Branch(props: Props & { section: Section; onEdited: () => void }): React.JSX.Element {
  const { section, model, trans, onEdited } = props;
  const isFolded = model.folded.has(section.key);
  const entry = model.entry;
  const chosen = new Set(model.picked.chosen);
  const title = titleOf(props);
  return (
    <div
      className="jp-Autotrain-section"
      role="treeitem"
      aria-level={1}
      aria-expanded={!isFolded}
      aria-label={`${title} ${countOf(props)}`}
      tabIndex={entry === section.key ? 0 : -1}
      data-id={section.key}
    >
      <div className="jp-Autotrain-heading" title={section.of}>
        <span className="jp-Autotrain-caret" aria-hidden="true" />
        {title} <span className="jp-Autotrain-count">{countOf(props)}</span>
      </div>
      {!isFolded && (
        <div role="group">
          {section.experiments.map((experiment) => (
            <Item
              key={experiment.id}
              experiment={experiment}
              isChosen={chosen.has(experiment.id)}
              isEntry={entry === experiment.id}
              draft={model.draft?.id === experiment.id ? model.draft : null}
              trans={trans}
              onEdited={onEdited}
            />
          ))}
        </div>
      )}
    </div>
  );
}

function titleOf({ section, grouping, trans }: Props & { section: Section }): string {
  if (grouping === 'notebook') return fileName(section.of) || trans.__('No notebook');
  const titles = { running: trans.__('Running'), queued: trans.__('Queued'), done: trans.__('Done') };
  return titles[section.of as Group];
}

function countOf({ section, grouping, list }: Props & { section: Section }): number {
  const counts: Record<string, number> = grouping === 'state' ? list.groups : list.notebooks;
  return counts[section.of] ?? section.experiments.length;
}

/** Take a key; gives whether the focus has to move to the row that is picked now. */
function onKey(event: React.KeyboardEvent, model: TreeModel): boolean {
  const id = idAt(event.target);
  if (!id) return false;
  const rows = model.rows;
  const picked = { ...model.picked, focused: id };
  const by = { ArrowDown: 1, ArrowUp: -1, Home: -rows.length, End: rows.length }[event.key];
  if (by !== undefined) model.pick(pickedAt(event, picked, neighbour(picked, by, rows), rows));
  else if (event.key === ' ') {
    if (isSection(id)) model.fold(id, !model.folded.has(id));
    else model.pick(toggled(picked, id));
  } else if (event.key === 'Escape') model.pick({ ...picked, chosen: [] });
  else if (event.key === 'a' && isWithControl(event))
    model.pick({ ...picked, chosen: rows.filter((row) => !isSection(row)) });
  else if (!onFoldingKey(event, model, id)) return false;
  event.preventDefault();
  event.stopPropagation();
  return true;
}

/** Shift extends the range, Control only moves the focus. */
function pickedAt(event: React.KeyboardEvent, picked: Picked, to: string, rows: string[]): Picked {
  if (event.shiftKey) return extended(picked, to, rows);
  return isWithControl(event) ? { ...picked, focused: to } : only(to);
}

function isWithControl(event: React.KeyboardEvent | React.MouseEvent): boolean {
  return event.ctrlKey || event.metaKey;
}

/** Right unfolds, left folds or goes to the section; Enter does either at a section. */
function onFoldingKey(event: React.KeyboardEvent, model: TreeModel, id: string): boolean {
  const isFolded = model.folded.has(id);
  if (isSection(id)) {
    if (event.key === 'Enter') model.fold(id, !isFolded);
    else if (event.key === 'ArrowRight') model.fold(id, false);
    else if (event.key === 'ArrowLeft') model.fold(id, true);
    else return false;
    model.pick(only(id));
    return true;
  }
  if (event.key !== 'ArrowLeft') return false;
  model.pick(only(model.sectionOf(id)?.key ?? id));
  return true;
}

/** A row that is come to by keys is chosen; a click says for itself what it chooses. */
function onFocus(event: React.FocusEvent, model: TreeModel): void {
  const id = event.target.getAttribute('data-id');
  if (id && id !== model.picked.focused) model.pick(only(id));
}

function onClick(event: React.MouseEvent, { model, onOpen, onTag }: Props): void {
  const id = idAt(event.target);
  if (!id) return;
  rowOf(event.currentTarget as HTMLElement, id)?.focus();
  const target = event.target as HTMLElement;
  if (isSection(id)) model.fold(id, !model.folded.has(id));
  else if (target.dataset.tag !== undefined) onTag(target.dataset.tag);
  else if (event.shiftKey) model.pick(extended(model.picked, id, model.rows));
  else if (isWithControl(event) || target.className === 'jp-Autotrain-check')
    model.pick(toggled(model.picked, id));
  else {
    model.pick(only(id));
    onOpen(id);
  }
}

function idAt(target: EventTarget): string {
  return (target as Element).closest<HTMLElement>('[data-id]')?.dataset.id ?? '';
}

function rowOf(root: HTMLElement | null, id: string): HTMLElement | null {
  return root?.querySelector<HTMLElement>(`[data-id="${CSS.escape(id)}"]`) ?? null;
}

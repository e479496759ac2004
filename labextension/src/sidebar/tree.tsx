/** The tree of experiments: arrows, ranges and folding as in every tree; what an action does is in the commands. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { ExperimentList, Group } from '../api/experiments';
import { Item } from './item';
import { isSection, only } from './picked';
import { Pointer, idAt, pickByClick, pickByFocus, pickByKey, rowOf } from './row_keys';
import { fileName } from './sections';
import type { Grouping, Section } from './sections';
import type { TreeModel } from './tree_model';

interface Props {
  /** The server's clock to the minute, seconds since the epoch. */
  now_s: number;
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
  const [pointer] = React.useState(() => new Pointer());
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
      onMouseDown={(event) => {
        pointer.press(event);
      }}
      onFocus={(event) => {
        focused.current = true;
        if (!pointer.isPressing) pickByFocus(event, model);
      }}
      onBlur={() => {
        focused.current = false;
      }}
      onClick={(event) => {
        onClick(event, pointer.clicked(event), props);
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
              isCurrent={model.picked.focused === experiment.id}
              isUnderState={props.grouping === 'state'}
              now_s={props.now_s}
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
  if (event.key === ' ' && isSection(id)) model.fold(id, !model.folded.has(id));
  else if (!pickByKey(event, model, id) && !onFoldingKey(event, model, id)) return false;
  event.preventDefault();
  event.stopPropagation();
  return true;
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

function onClick(event: React.MouseEvent, id: string, { model, onOpen, onTag }: Props): void {
  if (!id) return;
  rowOf(event.currentTarget as HTMLElement, id)?.focus();
  const target = event.target as HTMLElement;
  if (isSection(id)) model.fold(id, !model.folded.has(id));
  else if (target.dataset.tag !== undefined) onTag(target.dataset.tag);
  else if (!pickByClick(event, model, id)) {
    model.pick(only(id));
    onOpen(id);
  }
}

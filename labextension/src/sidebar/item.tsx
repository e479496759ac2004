/** One experiment in the tree. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { Experiment } from '../api/experiments';
import { Editor } from './editor';
import { ended, facts } from './facts';
import { Sparkline } from './sparkline';
import type { Draft } from './tree_model';

interface Props {
  experiment: Experiment;
  isChosen: boolean;
  isEntry: boolean;
  /** What is typed of its tags and note, while they are edited. */
  draft: Draft | null;
  trans: TranslationBundle;
  /** Stays the same from one drawing to the next, else every row is drawn again. */
  onEdited: () => void;
}

export const Item = React.memo(
  ({ experiment, isChosen, isEntry, draft, trans, onEdited }: Props) => {
    const told = facts(experiment, trans);
    const tags = experiment.tags.map((tag) => `#${tag}`);
    return (
      <div
        className="jp-Autotrain-item"
        role="treeitem"
        aria-level={2}
        aria-selected={isChosen}
        aria-label={[experiment.name, ...told, ...tags, experiment.note].filter(Boolean).join(', ')}
        tabIndex={isEntry ? 0 : -1}
        data-id={experiment.id}
        data-state={experiment.state}
        title={experiment.reason}
      >
        <div className="jp-Autotrain-title">
          <span className="jp-Autotrain-check" aria-hidden="true" />
          <span className="jp-Autotrain-dot" aria-hidden="true" />
          <span className="jp-Autotrain-name">{experiment.name}</span>
          <Sparkline values={experiment.sparkline} />
        </div>
        <div className="jp-Autotrain-facts" title={[...told, experiment.reason].filter(Boolean).join(' · ')}>
          {told.join(' · ')}
        </div>
        {!experiment.final && (
          <progress aria-label={trans.__('Trials ended')} value={ended(experiment)} max={experiment.trials} />
        )}
        {draft ? (
          <Editor name={experiment.name} draft={draft} trans={trans} onClose={onEdited} />
        ) : (
          <Annotation tags={experiment.tags} note={experiment.note} />
        )}
      </div>
    );
  },
  (before, after) =>
    before.isChosen === after.isChosen &&
    before.isEntry === after.isEntry &&
    before.draft === after.draft &&
    JSON.stringify(before.experiment) === JSON.stringify(after.experiment),
);
Item.displayName = 'Item';

function Annotation({ tags, note }: { tags: string[]; note: string }): React.JSX.Element | null {
  if (!tags.length && !note) return null;
  return (
    <div className="jp-Autotrain-annotation">
      {tags.map((tag) => (
        <span key={tag} className="jp-Autotrain-tag" data-tag={tag}>
          {tag}
        </span>
      ))}
      {note && (
        <span className="jp-Autotrain-note" title={note}>
          {note}
        </span>
      )}
    </div>
  );
}

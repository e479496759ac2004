/** One experiment in the tree. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { Experiment } from '../api/experiments';
import { Editor } from './editor';
import { age, ended, facts, moment, sessionFacts, stateName } from './facts';
import type { Draft } from './rows_model';
import { Sparkline } from './sparkline';

/** What an experiment of a group is, unless its row says something else. */
const USUAL: Record<string, string> = { running: 'RUNNING', queued: 'WAITING', done: 'SUCCEEDED' };

interface Props {
  experiment: Experiment;
  isChosen: boolean;
  /** Whether it is the one that was gone to, or opened, last. */
  isCurrent: boolean;
  isEntry: boolean;
  /** Whether it is under the heading of its group of states. */
  isUnderState: boolean;
  /** What is typed of its tags and note, while they are edited. */
  draft: Draft | null;
  /** The server's clock to the minute, seconds since the epoch. */
  now_s: number;
  trans: TranslationBundle;
  /** Stays the same from one drawing to the next, else every row is drawn again. */
  onEdited: () => void;
}

export const Item = React.memo(
  ({ experiment, isChosen, isCurrent, isEntry, isUnderState, draft, now_s, trans, onEdited }: Props) => {
    const state = stateName(experiment.state, trans);
    const isTold = isUnderState && USUAL[experiment.group] === experiment.state;
    const isSession = experiment.mode === 'standard';
    const told = isSession
      ? sessionFacts(experiment, now_s, trans)
      : [...facts(experiment, trans), age(experiment.created_s, now_s, trans)];
    const tags = experiment.tags.map((tag) => `#${tag}`);
    const label = [experiment.name, state, ...told, ...tags, experiment.note];
    return (
      <div
        className="jp-Autotrain-item"
        role="treeitem"
        aria-level={2}
        aria-selected={isChosen}
        aria-label={label.filter(Boolean).join(', ')}
        tabIndex={isEntry ? 0 : -1}
        data-id={experiment.id}
        data-state={experiment.state}
        data-current={isCurrent || undefined}
        title={tooltip(experiment, state, trans)}
      >
        <div className="jp-Autotrain-title">
          <Sparkline values={experiment.sparkline} />
          <span className="jp-Autotrain-check" aria-hidden="true" />
          <span className="jp-Autotrain-dot" aria-hidden="true" />
          <span className="jp-Autotrain-name">{experiment.name}</span>
        </div>
        <Facts texts={isTold ? told : [state, ...told]} />
        {!experiment.final && !isSession && (
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
    before.isCurrent === after.isCurrent &&
    before.isEntry === after.isEntry &&
    before.isUnderState === after.isUnderState &&
    before.draft === after.draft &&
    before.now_s === after.now_s &&
    JSON.stringify(before.experiment) === JSON.stringify(after.experiment),
);
Item.displayName = 'Item';

/** Each stays whole where the line is too short for all. */
function Facts({ texts }: { texts: string[] }): React.JSX.Element {
  return (
    <div className="jp-Autotrain-facts">
      {texts.map((text, i) => (
        <React.Fragment key={text}>
          <span className="jp-Autotrain-fact">{i < texts.length - 1 ? `${text} ·` : text}</span>{' '}
        </React.Fragment>
      ))}
    </div>
  );
}

function tooltip(experiment: Experiment, state: string, trans: TranslationBundle): string {
  const submitted = trans.__('Submitted %1', moment(experiment.created_s));
  return [experiment.name, [state, experiment.reason].filter(Boolean).join(': '), submitted].join('\n');
}

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

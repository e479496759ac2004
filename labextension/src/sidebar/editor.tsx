/** The tags and the note of an experiment, edited where they are shown. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { annotate } from '../api/experiments';
import type { Draft } from './rows_model';

interface Props {
  /** Of the experiment. */
  name: string;
  draft: Draft;
  trans: TranslationBundle;
  onClose: () => void;
}

export function Editor({ name, draft, trans, onClose }: Props): React.JSX.Element {
  const [error, setError] = React.useState('');

  const save = async (): Promise<void> => {
    try {
      await annotate(draft.id, { tags: tagsIn(draft.tags), note: draft.note });
      onClose();
    } catch (refused) {
      setError(refused instanceof Error ? refused.message : String(refused));
    }
  };
  return (
    <form
      className="jp-Autotrain-editor"
      aria-label={trans.__('Tags and note of %1', name)}
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.key === 'Escape') onClose();
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void save();
      }}
      onClick={(event) => {
        event.stopPropagation();
      }}
    >
      <Fields draft={draft} trans={trans} />
      {error && <p role="alert">{error}</p>}
      <div className="jp-Autotrain-buttons">
        <button type="submit" className="jp-mod-styled jp-mod-accept">
          {trans.__('Save')}
        </button>
        <button type="button" className="jp-mod-styled" onClick={onClose}>
          {trans.__('Cancel')}
        </button>
      </div>
    </form>
  );
}

function Fields({ draft, trans }: Pick<Props, 'draft' | 'trans'>): React.JSX.Element {
  const [{ tags, note }, show] = React.useState(draft);
  const change = (typed: Partial<Draft>): void => {
    Object.assign(draft, typed);
    show({ ...draft });
  };
  return (
    <>
      <label>
        {trans.__('Tags, separated by commas')}
        <input
          className="jp-mod-styled"
          autoFocus
          value={tags}
          onChange={(event) => {
            change({ tags: event.target.value });
          }}
        />
      </label>
      <label>
        {trans.__('Note')}
        <textarea
          className="jp-mod-styled"
          rows={3}
          maxLength={4000}
          value={note}
          onChange={(event) => {
            change({ note: event.target.value });
          }}
        />
      </label>
    </>
  );
}

/** Each tag once, without the spaces around it. */
export function tagsIn(text: string): string[] {
  const tags = text.split(',').map((tag) => tag.trim());
  return [...new Set(tags.filter(Boolean))];
}

/** What is filtered by, below the buttons: the box of the filter while it is open, and the tag that is chosen. */

import { closeIcon } from '@jupyterlab/ui-components';
import * as React from 'react';
import type { SidebarParts } from './list';

export function Filters({
  model,
  tree,
  trans,
}: Pick<SidebarParts, 'model' | 'tree' | 'trans'>): React.JSX.Element | null {
  const { text, tag } = model.query;
  const isOpen = tree.isFilterOpen || text !== '';
  if (!isOpen && !tag) return null;
  const close = (): void => {
    if (text) model.ask({ text: '' });
    tree.openFilter(false);
  };
  return (
    <div className="jp-Autotrain-filters" role="search" aria-label={trans.__('Filter')}>
      {isOpen && (
        <input
          type="search"
          className="jp-mod-styled"
          autoFocus={tree.isFilterOpen}
          placeholder={trans.__('Name, tag, note or notebook')}
          aria-label={trans.__('Filter by name, tag, note or notebook')}
          maxLength={200}
          value={text}
          onChange={(event) => {
            tree.openFilter(true);
            model.ask({ text: event.target.value });
          }}
          onKeyDown={(event) => {
            if (event.key === 'Escape') close();
          }}
        />
      )}
      {tag && (
        <button
          className="jp-Autotrain-tag"
          title={trans.__('Show all tags')}
          aria-label={trans.__('#%1: show all tags', tag)}
          onClick={() => {
            model.ask({ tag: '' });
          }}
        >
          #{tag} <closeIcon.react tag="span" width="10px" />
        </button>
      )}
    </div>
  );
}

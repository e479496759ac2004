/** The sidebar: experiments that run, wait and are done, with progress, best value and a small curve. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { closeIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import type { ExperimentList } from '../api/experiments';
import { MAGIC } from '../header/header_lines';
import { useChanges } from '../home/model_signal';
import { ChosenBar } from './chosen_bar';
import { OPEN_EXPERIMENT, SHOW_TABLE } from './commands';
import { MOST_LISTED } from './list_model';
import type { ListModel } from './list_model';
import type { Preferences } from './preferences';
import { Tree } from './tree';
import type { TreeModel } from './tree_model';

export interface SidebarParts {
  model: ListModel;
  tree: TreeModel;
  preferences: Preferences;
  commands: CommandRegistry;
  trans: TranslationBundle;
}

const MINUTE_S = 60;

/** What is below the line of buttons. */
export function Sidebar(parts: SidebarParts): React.JSX.Element {
  const { model, tree, preferences, commands, trans } = parts;
  useChanges(model.changed, tree.changed, preferences.changed);
  return (
    <>
      <Filters model={model} tree={tree} trans={trans} />
      <Messages model={model} trans={trans} />
      {model.list && <Listed {...parts} list={model.list} />}
      <ChosenBar
        commands={commands}
        chosen={tree.picked.chosen.length}
        trans={trans}
        onClear={() => {
          tree.pick({ ...tree.picked, chosen: [] });
        }}
      />
    </>
  );
}

/** What is filtered by, below the buttons: the box of the filter while it is open, and the tag that is chosen. */
function Filters({
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

/** The last full minute of the server's clock, seconds since the epoch. */
export function useMinutes(model: ListModel): number {
  const [, draw] = React.useState(0);
  const minute_s = Math.floor(model.now_s() / MINUTE_S) * MINUTE_S;
  React.useEffect(() => {
    const left_s = minute_s + MINUTE_S - model.now_s();
    const timer = window.setTimeout(() => {
      draw((times) => times + 1);
    }, 1000 * left_s);
    return () => {
      window.clearTimeout(timer);
    };
  });
  return minute_s;
}

/** What is wrong, in words; one polite line, so that it is read out once. */
export function Messages({ model, trans }: Pick<SidebarParts, 'model' | 'trans'>): React.JSX.Element {
  const unfinished = (model.list?.groups.running ?? 0) + (model.list?.groups.queued ?? 0);
  let text = model.isConnected ? model.error : trans.__('The server does not answer. Trying again…');
  if (!text && unfinished && model.list?.manager.alive === false)
    text = trans.__('The manager is not running. Your next submit, stop or retry starts it.');
  return (
    <p className="jp-Autotrain-message" role="status" hidden={!text}>
      {text}
    </p>
  );
}

function Listed({
  list,
  model,
  tree,
  preferences,
  commands,
  trans,
}: SidebarParts & { list: ExperimentList }): React.JSX.Element {
  const now_s = useMinutes(model);
  if (!list.total) {
    const isFiltered = Boolean(model.query.text || model.query.tag);
    const none = trans.__('No experiments yet. Begin a cell with %1 to make one.', MAGIC);
    return <p className="jp-Autotrain-empty">{isFiltered ? trans.__('No experiments match.') : none}</p>;
  }
  return (
    <div className="jp-Autotrain-scrolled">
      <Tree
        now_s={now_s}
        model={tree}
        list={list}
        grouping={preferences.values.grouping}
        trans={trans}
        onOpen={(id) => {
          if (commands.hasCommand(OPEN_EXPERIMENT)) void commands.execute(OPEN_EXPERIMENT, { id });
        }}
        onTag={(tag) => {
          model.ask({ tag });
        }}
      />
      {list.experiments.length < list.total && (
        <More list={list} model={model} commands={commands} trans={trans} />
      )}
    </div>
  );
}

function More({
  list,
  model,
  commands,
  trans,
}: Pick<SidebarParts, 'model' | 'commands' | 'trans'> & { list: ExperimentList }): React.JSX.Element {
  if (model.query.limit < MOST_LISTED)
    return (
      <button
        className="jp-mod-styled"
        onClick={() => {
          model.more();
        }}
      >
        {trans.__('More')}
      </button>
    );
  return (
    <button className="jp-mod-styled" onClick={() => void commands.execute(SHOW_TABLE)}>
      {trans.__('Show all %1 in a table', list.total)}
    </button>
  );
}

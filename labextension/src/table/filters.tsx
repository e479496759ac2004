/** What the table of experiments is filtered by. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { stateWord } from '../../widgets/lib/format';
import { NO_FILTER } from './table_model';
import type { TableModel, TableQuery } from './table_model';

const STATES = ['WAITING', 'RUNNING', 'STOPPING', 'SUCCEEDED', 'FAILED', 'CANCELLED'];

type Filter = keyof typeof NO_FILTER;

interface Props {
  model: TableModel;
  trans: TranslationBundle;
}

export function Filters({ model, trans }: Props): React.JSX.Element {
  const { query } = model;
  const set = (change: Partial<TableQuery>): void => {
    model.show(change);
  };
  return (
    <div className="jp-AutotrainTable-filters" role="search" aria-label={trans.__('Filter')}>
      <input
        type="search"
        className="jp-mod-styled"
        placeholder={trans.__('Name, tag, note or notebook')}
        aria-label={trans.__('Filter by name, tag, note or notebook')}
        maxLength={200}
        value={query.text}
        onChange={(event) => {
          set({ text: event.target.value });
        }}
      />
      <Choices model={model} trans={trans} />
      <Day
        label={trans.__('From')}
        value={query.from}
        onDay={(from) => {
          set({ from });
        }}
      />
      <Day
        label={trans.__('To')}
        value={query.to}
        onDay={(to) => {
          set({ to });
        }}
      />
      <button
        className="jp-mod-styled"
        disabled={!model.isFiltered}
        onClick={() => {
          set(NO_FILTER);
        }}
      >
        {trans.__('Clear filters')}
      </button>
    </div>
  );
}

function Choices({ model, trans }: Props): React.JSX.Element {
  const { tags = [], places = [], metrics = [] } = model.list.list ?? {};
  const states = STATES.map((state): [string, string] => [state, stateWord(state, trans)]);
  const { query } = model;
  const choices: { name: Filter; label: string; all: string; options: [string, string][] }[] = [
    { name: 'state', label: trans.__('State'), all: trans.__('All states'), options: states },
    { name: 'tag', label: trans.__('Tag'), all: trans.__('All tags'), options: same(tags, query.tag) },
    {
      name: 'place',
      label: trans.__('Place'),
      all: trans.__('All places'),
      options: same(places, query.place),
    },
    {
      name: 'metric',
      label: trans.__('Metric'),
      all: trans.__('All metrics'),
      options: same(metrics, query.metric),
    },
  ];
  return (
    <>
      {choices.map(({ name, label, all, options }) => (
        <select
          key={name}
          className="jp-mod-styled"
          aria-label={label}
          value={query[name]}
          onChange={(event) => {
            model.show({ [name]: event.target.value });
          }}
        >
          {[['', all], ...options].map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      ))}
    </>
  );
}

interface DayProps {
  label: string;
  value: string;
  onDay: (day: string) => void;
}

function Day({ label, value, onDay }: DayProps): React.JSX.Element {
  return (
    <label>
      {label}
      <input
        type="date"
        className="jp-mod-styled"
        value={value}
        onChange={(event) => {
          onDay(event.target.value);
        }}
      />
    </label>
  );
}

/** Options that read as they are, also one that is chosen and not there any more. */
function same(texts: readonly string[], chosen: string): [string, string][] {
  const all = new Set(chosen ? [...texts, chosen] : texts);
  return [...all].map((text) => [text, text]);
}

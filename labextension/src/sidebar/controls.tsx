/** What is listed, and in which order. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { Sort } from '../api/experiments';
import type { ListModel } from './list_model';
import type { Preferences } from './preferences';
import type { Grouping } from './sections';

interface Props {
  model: ListModel;
  preferences: Preferences;
  trans: TranslationBundle;
  /** Shows where trials can run; undefined where nothing can show it. */
  onPlaces: (() => void) | undefined;
}

export function Controls({ model, preferences, trans, onPlaces }: Props): React.JSX.Element {
  const tags = [...new Set([...(model.list?.tags ?? []), ...(model.query.tag ? [model.query.tag] : [])])];
  const tagOptions: [string, string][] = [
    ['', trans.__('All tags')],
    ...tags.map((tag) => [tag, `#${tag}`] as [string, string]),
  ];
  return (
    <div className="jp-Autotrain-controls" role="search" aria-label={trans.__('Filter and order')}>
      <input
        type="search"
        className="jp-mod-styled"
        placeholder={trans.__('Filter')}
        aria-label={trans.__('Filter by name, tag, note or notebook')}
        maxLength={200}
        value={model.query.text}
        onChange={(event) => {
          model.ask({ text: event.target.value });
        }}
      />
      <Choice
        label={trans.__('Tag')}
        value={model.query.tag}
        options={tagOptions}
        onChoice={(tag) => {
          model.ask({ tag });
        }}
      />
      <OrderControls preferences={preferences} trans={trans} />
      {onPlaces && (
        <button
          className="jp-mod-styled"
          title={trans.__('Where trials can run, and what runs there')}
          onClick={onPlaces}
        >
          {trans.__('Places')}
        </button>
      )}
    </div>
  );
}

function OrderControls({ preferences, trans }: Pick<Props, 'preferences' | 'trans'>): React.JSX.Element {
  const { sort, isReversed, grouping } = preferences.values;
  const sorts: [Sort, string][] = [
    ['created', trans.__('Newest')],
    ['ended', trans.__('Last ended')],
    ['name', trans.__('Name')],
    ['best', trans.__('Best value')],
  ];
  const groupings: [Grouping, string][] = [
    ['state', trans.__('By state')],
    ['notebook', trans.__('By notebook')],
  ];
  return (
    <>
      <Choice
        label={trans.__('Order')}
        value={sort}
        options={sorts}
        onChoice={(chosen) => void preferences.set('sort', chosen as Sort)}
      />
      <button
        className="jp-mod-styled jp-Autotrain-reverse"
        aria-label={trans.__('Reverse the order')}
        aria-pressed={isReversed}
        title={trans.__('Reverse the order')}
        onClick={() => void preferences.set('isReversed', !isReversed)}
      >
        {isReversed ? '↑' : '↓'}
      </button>
      <Choice
        label={trans.__('Group')}
        value={grouping}
        options={groupings}
        onChoice={(chosen) => void preferences.set('grouping', chosen as Grouping)}
      />
    </>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  options: [string, string][];
  onChoice: (value: string) => void;
}

function Choice({ label, value, options, onChoice }: ChoiceProps): React.JSX.Element {
  return (
    <select
      className="jp-mod-styled"
      aria-label={label}
      value={value}
      onChange={(event) => {
        onChoice(event.target.value);
      }}
    >
      {options.map(([option, text]) => (
        <option key={option} value={option}>
          {text}
        </option>
      ))}
    </select>
  );
}

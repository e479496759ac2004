/** The sidebar: experiments that run, wait and are done, with progress, best value and a small curve. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { duration, number } from '../widgets/lib/format';
import type { Experiment, ExperimentList, Group, Sort } from './api';
import type { ListModel } from './model';

const GROUPS: Group[] = ['running', 'queued', 'done'];
const ENDED = new Set(['SUCCEEDED', 'FAILED', 'CANCELLED', 'EARLY_STOPPED', 'PREEMPTED', 'LOST']);

interface Props {
  model: ListModel;
  trans: TranslationBundle;
}

export function Sidebar({ model, trans }: Props): React.JSX.Element {
  const [, render] = React.useReducer((count: number) => count + 1, 0);
  React.useEffect(() => {
    model.changed.connect(render);
    return () => {
      model.changed.disconnect(render);
    };
  }, [model]);
  return (
    <>
      <Controls model={model} trans={trans} />
      <Messages model={model} trans={trans} />
      {model.list && <Groups model={model} list={model.list} trans={trans} />}
    </>
  );
}

function Controls({ model, trans }: Props): React.JSX.Element {
  const sorts: [Sort, string][] = [
    ['created', trans.__('Newest')],
    ['ended', trans.__('Last ended')],
    ['name', trans.__('Name')],
    ['best', trans.__('Best value')],
  ];
  return (
    <div className="jp-Autotrain-controls">
      <input
        type="search"
        className="jp-mod-styled"
        placeholder={trans.__('Filter')}
        aria-label={trans.__('Filter by name, tag, note or notebook')}
        maxLength={200}
        onChange={(event) => {
          model.ask({ text: event.target.value });
        }}
      />
      <select
        className="jp-mod-styled"
        aria-label={trans.__('Order')}
        value={model.query.sort}
        onChange={(event) => {
          model.ask({ sort: event.target.value as Sort });
        }}
      >
        {sorts.map(([sort, label]) => (
          <option key={sort} value={sort}>
            {label}
          </option>
        ))}
      </select>
    </div>
  );
}

/** What is wrong, in words; one polite line, so that it is read out once. */
function Messages({ model, trans }: Props): React.JSX.Element {
  const unfinished = (model.list?.groups.running ?? 0) + (model.list?.groups.queued ?? 0);
  let text = model.error;
  if (!text && !model.isConnected) text = trans.__('The server does not answer; it is tried again.');
  if (!text && unfinished && model.list?.manager.alive === false)
    text = trans.__(
      'The manager does not run: nothing is started or stopped until an action starts it again.',
    );
  return (
    <p className="jp-Autotrain-message" role="status" hidden={!text}>
      {text}
    </p>
  );
}

function Groups({ model, list, trans }: Props & { list: ExperimentList }): React.JSX.Element {
  const titles = { running: trans.__('Running'), queued: trans.__('Queued'), done: trans.__('Done') };
  if (!list.total) {
    const text = model.query.text
      ? trans.__('No experiment fits.')
      : trans.__('No experiment yet: %%autotrain on a cell makes one.');
    return <p className="jp-Autotrain-empty">{text}</p>;
  }
  return (
    <div className="jp-Autotrain-groups">
      {GROUPS.map((group) => {
        const shown = list.experiments.filter((experiment) => experiment.group === group);
        if (!shown.length) return null;
        return (
          <section key={group} aria-label={titles[group]}>
            <h3>
              {titles[group]} <span className="jp-Autotrain-count">{list.groups[group]}</span>
            </h3>
            <ul>
              {shown.map((experiment) => (
                <Item key={experiment.id} experiment={experiment} trans={trans} />
              ))}
            </ul>
          </section>
        );
      })}
      {list.experiments.length < list.total && model.query.limit < 200 && (
        <button
          className="jp-mod-styled"
          onClick={() => {
            model.more();
          }}
        >
          {trans.__('More')}
        </button>
      )}
    </div>
  );
}

/** One experiment. It is drawn again only where it has changed. */
const Item = React.memo(
  ({ experiment, trans }: { experiment: Experiment; trans: TranslationBundle }) => (
    <li className="jp-Autotrain-item" data-state={experiment.state} title={experiment.reason}>
      <div className="jp-Autotrain-title">
        <span className="jp-Autotrain-dot" aria-hidden="true" />
        <span className="jp-Autotrain-name">{experiment.name}</span>
        <Sparkline values={experiment.sparkline} />
      </div>
      <div className="jp-Autotrain-facts">{facts(experiment, trans).join(' · ')}</div>
      {!experiment.final && (
        <progress aria-label={trans.__('Trials ended')} value={ended(experiment)} max={experiment.trials} />
      )}
    </li>
  ),
  (before, after) => JSON.stringify(before.experiment) === JSON.stringify(after.experiment),
);
Item.displayName = 'Item';

function ended(experiment: Experiment): number {
  return Object.entries(experiment.counts).reduce(
    (sum, [state, many]) => sum + (ENDED.has(state) ? many : 0),
    0,
  );
}

function facts(experiment: Experiment, trans: TranslationBundle): string[] {
  const found = [experiment.state.toLowerCase(), `${ended(experiment)}/${experiment.trials}`];
  if (experiment.best && experiment.objective)
    found.push(`${experiment.objective.label} ${number(experiment.best.value)}`);
  if (experiment.eta_s !== null) found.push(trans.__('%1 left', duration(experiment.eta_s)));
  else if (experiment.final) found.push(duration(experiment.took_s));
  return [...found, ...experiment.tags.map((tag) => `#${tag}`)];
}

function Sparkline({ values }: { values: number[] }): React.JSX.Element | null {
  if (values.length < 2) return null;
  const low = Math.min(...values);
  const span = Math.max(...values) - low || 1;
  const points = values.map(
    (value, i) => `${(i / (values.length - 1)) * 60},${15 - ((value - low) / span) * 14}`,
  );
  return (
    <svg className="jp-Autotrain-sparkline" viewBox="0 0 60 16" aria-hidden="true">
      <polyline points={points.join(' ')} />
    </svg>
  );
}

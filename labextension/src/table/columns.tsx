/** The columns of the table of experiments. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { duration, number, stateWord } from '../../widgets/lib/format';
import type { Experiment, Sort } from '../api/experiments';
import { age, ended, moment } from '../sidebar/facts';
import { fileName } from '../sidebar/sections';
import { Sparkline } from '../sidebar/sparkline';

export interface Cell {
  experiment: Experiment;
  /** The server's clock, seconds since the epoch. */
  now_s: number;
  trans: TranslationBundle;
}

export interface Column {
  /** What the server sorts by. */
  sort: Sort;
  head: string;
  isNumber?: boolean;
  cell: (cell: Cell) => React.ReactNode;
  /** What the cell says in full, where it may be too narrow. */
  title?: (cell: Cell) => string;
}

export function columns(trans: TranslationBundle): Column[] {
  return [
    { sort: 'name', head: trans.__('Name'), cell: nameCell, title: nameTitle },
    { sort: 'state', head: trans.__('State'), cell: stateCell, title: ({ experiment }) => experiment.reason },
    { sort: 'metric', head: trans.__('Metric'), cell: ({ experiment }) => experiment.objective?.label ?? '' },
    { sort: 'best', head: trans.__('Best'), isNumber: true, cell: bestCell },
    { sort: 'trials', head: trans.__('Trials'), isNumber: true, cell: trialsCell },
    { sort: 'took', head: trans.__('Duration'), isNumber: true, cell: tookCell },
    { sort: 'created', head: trans.__('Submitted'), cell: ageCell, title: createdTitle },
    { sort: 'place', head: trans.__('Place'), cell: placeCell, title: placeCell },
    { sort: 'tags', head: trans.__('Tags'), cell: tagsCell, title: tagsCell },
    { sort: 'notebook', head: trans.__('Notebook'), cell: notebookCell, title: notebookTitle },
  ];
}

function nameCell({ experiment }: Cell): React.ReactNode {
  return (
    <>
      <button className="jp-AutotrainTable-name" tabIndex={-1} data-open={experiment.id}>
        {experiment.name}
      </button>
      {experiment.note && <span className="jp-AutotrainTable-note">{experiment.note}</span>}
    </>
  );
}

function nameTitle({ experiment }: Cell): string {
  return [experiment.name, experiment.note].filter(Boolean).join('\n');
}

function stateCell({ experiment, trans }: Cell): React.ReactNode {
  return (
    <>
      <span className="jp-Autotrain-dot" aria-hidden="true" />
      {stateWord(experiment.state, trans)}
    </>
  );
}

function bestCell({ experiment }: Cell): React.ReactNode {
  return (
    <>
      <Sparkline values={experiment.sparkline} /> {experiment.best ? number(experiment.best.value) : ''}
    </>
  );
}

function trialsCell({ experiment }: Cell): string {
  return `${ended(experiment)}/${experiment.trials}`;
}

function tookCell({ experiment }: Cell): string {
  return experiment.state === 'WAITING' ? '' : duration(experiment.took_s);
}

function ageCell({ experiment, now_s, trans }: Cell): string {
  return age(experiment.created_s, now_s, trans);
}

function createdTitle({ experiment }: Cell): string {
  return moment(experiment.created_s);
}

function placeCell({ experiment }: Cell): string {
  return experiment.backend;
}

function tagsCell({ experiment }: Cell): string {
  return experiment.tags.join(', ');
}

function notebookCell({ experiment }: Cell): string {
  return fileName(experiment.notebook);
}

function notebookTitle({ experiment }: Cell): string {
  return experiment.notebook;
}

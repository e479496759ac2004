/** All experiments in the main area: a table that is sorted, filtered and turned page by page on the server. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import type { Experiment } from '../api/experiments';
import { useChanges } from '../home/model_signal';
import { ChosenBar } from '../sidebar/chosen_bar';
import { OPEN_EXPERIMENT } from '../sidebar/commands';
import { Editor } from '../sidebar/editor';
import { Messages, useMinutes } from '../sidebar/list';
import { only } from '../sidebar/picked';
import { Pointer, idAt, pickByClick, pickByFocus, pickByKey, rowOf } from '../sidebar/row_keys';
import { columns } from './columns';
import type { Column } from './columns';
import { Filters } from './filters';
import { Pager } from './pager';
import { PAGE } from './table_model';
import type { TableModel } from './table_model';

interface Props {
  model: TableModel;
  commands: CommandRegistry;
  trans: TranslationBundle;
}

export function ExperimentsTable({ model, commands, trans }: Props): React.JSX.Element {
  useChanges(model.changed);
  const { list } = model.list;
  return (
    <>
      <Filters model={model} trans={trans} />
      <Messages model={model.list} trans={trans} />
      {list && <Table model={model} commands={commands} trans={trans} />}
      <div className="jp-AutotrainTable-foot">
        {list && <Pager model={model} total={list.total} trans={trans} />}
        <ChosenBar
          commands={commands}
          chosen={model.picked.chosen.length}
          trans={trans}
          onClear={() => {
            model.pick({ ...model.picked, chosen: [] });
          }}
        />
      </div>
    </>
  );
}

function Table({ model, commands, trans }: Props): React.JSX.Element {
  const root = React.useRef<HTMLTableElement>(null);
  const [pointer] = React.useState(() => new Pointer());
  const shown = React.useMemo(() => columns(trans), [trans]);
  const onEdited = React.useCallback(() => {
    const id = model.draft?.id ?? '';
    model.endEdit();
    rowOf(root.current, id)?.focus();
  }, [model]);
  const open = (id: string): void => {
    if (commands.hasCommand(OPEN_EXPERIMENT)) void commands.execute(OPEN_EXPERIMENT, { id });
  };
  return (
    <div className="jp-AutotrainTable-scroll">
      <table
        ref={root}
        role="grid"
        aria-label={trans.__('Experiments')}
        aria-multiselectable="true"
        aria-rowcount={(model.list.list?.total ?? 0) + 1}
        onKeyDown={(event) => {
          if (onKey(event, model)) rowOf(root.current, model.picked.focused)?.focus();
        }}
        onMouseDown={(event) => {
          pointer.press(event);
        }}
        onFocus={(event) => {
          if (!pointer.isPressing) pickByFocus(event, model);
        }}
        onClick={(event) => {
          onClick(event, pointer.clicked(event), model, open);
        }}
        onDoubleClick={(event) => {
          const id = idAt(event.target);
          if (id) open(id);
        }}
        onContextMenu={(event) => {
          const id = idAt(event.target);
          if (id && !model.picked.chosen.includes(id)) model.pick(only(id));
        }}
      >
        <Head model={model} columns={shown} trans={trans} />
        <Rows model={model} columns={shown} trans={trans} onEdited={onEdited} />
      </table>
    </div>
  );
}

interface HeadProps {
  model: TableModel;
  columns: Column[];
  trans: TranslationBundle;
}

function Head({ model, columns, trans }: HeadProps): React.JSX.Element {
  const { sort, order } = model.query;
  return (
    <thead>
      <tr aria-rowindex={1}>
        <td aria-label={trans.__('Chosen')} />
        {columns.map((column) => (
          <th
            key={column.sort}
            scope="col"
            aria-sort={column.sort === sort ? order : 'none'}
            className={column.isNumber ? 'jp-mod-number' : undefined}
          >
            <button
              onClick={() => {
                model.sortBy(column.sort);
              }}
            >
              {column.head}
            </button>
          </th>
        ))}
      </tr>
    </thead>
  );
}

function Rows({ model, columns, trans, onEdited }: HeadProps & { onEdited: () => void }): React.JSX.Element {
  const now_s = useMinutes(model.list);
  const chosen = new Set(model.picked.chosen);
  const { draft, entry } = model;
  return (
    <tbody>
      {(model.list.list?.experiments ?? []).map((experiment, i) => (
        <React.Fragment key={experiment.id}>
          <Row
            experiment={experiment}
            index={model.query.page * PAGE + i + 2}
            isChosen={chosen.has(experiment.id)}
            isCurrent={model.picked.focused === experiment.id}
            isEntry={entry === experiment.id}
            now_s={now_s}
            columns={columns}
            trans={trans}
          />
          {draft?.id === experiment.id && (
            <tr>
              <td colSpan={columns.length + 1}>
                <Editor name={experiment.name} draft={draft} trans={trans} onClose={onEdited} />
              </td>
            </tr>
          )}
        </React.Fragment>
      ))}
    </tbody>
  );
}

interface RowProps {
  experiment: Experiment;
  /** From 1; the head is the first. */
  index: number;
  isChosen: boolean;
  isCurrent: boolean;
  isEntry: boolean;
  now_s: number;
  columns: Column[];
  trans: TranslationBundle;
}

const Row = React.memo(
  ({ experiment, index, isChosen, isCurrent, isEntry, now_s, columns, trans }: RowProps) => {
    const cell = { experiment, now_s, trans };
    return (
      <tr
        className="jp-Autotrain-item"
        tabIndex={isEntry ? 0 : -1}
        aria-rowindex={index}
        aria-selected={isChosen}
        data-id={experiment.id}
        data-state={experiment.state}
        data-current={isCurrent || undefined}
      >
        <td role="gridcell">
          <span className="jp-Autotrain-check" aria-hidden="true" />
        </td>
        {columns.map((column) => (
          <td
            key={column.sort}
            role={column.sort === 'name' ? 'rowheader' : 'gridcell'}
            className={column.isNumber ? 'jp-mod-number' : undefined}
            title={column.title?.(cell)}
          >
            {column.cell(cell)}
          </td>
        ))}
      </tr>
    );
  },
  (before, after) =>
    before.index === after.index &&
    before.isChosen === after.isChosen &&
    before.isCurrent === after.isCurrent &&
    before.isEntry === after.isEntry &&
    before.now_s === after.now_s &&
    JSON.stringify(before.experiment) === JSON.stringify(after.experiment),
);
Row.displayName = 'Row';

/** Take a key that is pressed on a row; gives whether the focus has to move to the row that is picked now. */
function onKey(event: React.KeyboardEvent, model: TableModel): boolean {
  const id = idAt(event.target);
  if (!id) return false;
  const page = model.query.page + ({ PageDown: 1, PageUp: -1 }[event.key] ?? 0);
  if (page === model.query.page && !pickByKey(event, model, id)) return false;
  event.preventDefault();
  event.stopPropagation();
  if (page >= 0 && page < model.pages && page !== model.query.page) model.show({ page });
  return true;
}

function onClick(event: React.MouseEvent, id: string, model: TableModel, open: (id: string) => void): void {
  if (!id) return;
  rowOf(event.currentTarget as HTMLElement, id)?.focus();
  if (pickByClick(event, model, id)) return;
  model.pick(only(id));
  if ((event.target as HTMLElement).dataset.open) open(id);
}

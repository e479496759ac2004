/** The table of all experiments: what is asked for, page by page, and what is chosen of it. */

import type { Selection } from '../actions/selection';
import type { ExperimentList, ListQuery, Order, Sort } from '../api/experiments';
import { eachChange } from '../home/model_signal';
import type { ListModel } from '../sidebar/list_model';
import { RowsModel } from '../sidebar/rows_model';

export const PAGE = 100;

/** What the table shows; "" is any. */
export interface TableQuery {
  text: string;
  state: string;
  tag: string;
  place: string;
  metric: string;
  /** The first and the last day of submission, as 2026-11-25. */
  from: string;
  to: string;
  sort: Sort;
  order: Order;
  /** From 0. */
  page: number;
}

export const NO_FILTER = { text: '', state: '', tag: '', place: '', metric: '', from: '', to: '' };
const FIRST: TableQuery = { ...NO_FILTER, sort: 'created', order: 'descending', page: 0 };
/** Columns that begin with the greatest: the newest, the best, the longest. */
const FALLING: ReadonlySet<Sort> = new Set(['created', 'ended', 'took', 'trials', 'best']);

export class TableModel extends RowsModel {
  query: TableQuery;

  constructor(
    readonly list: ListModel,
    selection: Selection,
    query: Partial<TableQuery> = {},
  ) {
    super(selection);
    this.query = { ...FIRST, ...query };
    list.ask(asked(this.query));
    eachChange(() => {
      if (list.list) this.#take(list.list);
      else this.signal.emit();
    }, list.changed);
  }

  override get rows(): string[] {
    return this.list.list?.experiments.map(({ id }) => id) ?? [];
  }

  get isFiltered(): boolean {
    return Object.keys(NO_FILTER).some((name) => this.query[name as keyof typeof NO_FILTER] !== '');
  }

  get pages(): number {
    return Math.max(Math.ceil((this.list.list?.total ?? 0) / PAGE), 1);
  }

  /** Show something else, from its first page on unless another is named. */
  show(change: Partial<TableQuery>): void {
    this.query = { ...this.query, page: 0, ...change };
    this.list.ask(asked(this.query));
  }

  /** By this column; by the same one again, the other way. */
  sortBy(sort: Sort): void {
    const { sort: before, order: old } = this.query;
    const usual = FALLING.has(sort) ? 'descending' : 'ascending';
    const order = sort !== before ? usual : old === 'ascending' ? 'descending' : 'ascending';
    this.show({ sort, order });
  }

  /** A page that is not there any more, because experiments were deleted, gives way to the last one. */
  #take(list: ExperimentList): void {
    this.takeRows(list.experiments);
    if (this.query.page >= this.pages) this.show({ page: this.pages - 1 });
  }
}

function asked({ page, from, to, ...rest }: TableQuery): ListQuery {
  const paged = { limit: PAGE, offset: page * PAGE, grouping: 'none' } as const;
  return { ...rest, ...paged, since_s: midnight(from, 0), until_s: midnight(to, 1) };
}

/** When a day begins in this browser's time zone, or a day so many days later: seconds since the epoch; "" for "". */
function midnight(day: string, daysLater: number): number | '' {
  const [year, month, date] = day.split('-').map(Number);
  if (year === undefined || month === undefined || date === undefined) return '';
  return new Date(year, month - 1, date + daysLater).getTime() / 1000;
}

/** Which rows of a long table are in the page: those in sight, and some around them. */

/** What is seen of the rows, in CSS pixels. */
export interface View {
  topPx: number;
  heightPx: number;
  /** Of one row, on average. */
  rowPx: number;
}

export interface RowWindow {
  first: number;
  /** The row after the last. */
  end: number;
}

const AROUND = 12;
const STEP = 6; // so many rows are exchanged at a time: not every pixel of scrolling draws

export function rowWindow(rows: number, { topPx, heightPx, rowPx }: View): RowWindow {
  const many = Math.ceil(heightPx / rowPx) + STEP + 2 * AROUND;
  const wanted = Math.floor(topPx / rowPx / STEP) * STEP - AROUND;
  const first = Math.max(Math.min(wanted, rows - many), 0);
  return { first, end: Math.min(first + many, rows) };
}

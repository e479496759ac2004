/** Points that no line touches. */

import type uPlot from 'uplot';

/**
 * The rows of a column that hold a number between gaps: no line is drawn there, so the points themselves must be.
 * A null is a gap; an undefined is a row that the curve does not have, which a line passes over.
 */
export function isolated(plot: uPlot, index: number): number[] | null {
  const column = plot.data[index] ?? [];
  const found: number[] = [];
  let lonely = -1;
  let before = false;
  for (let row = 0; row < column.length; row++) {
    const value = column[row];
    if (value === undefined) continue;
    const here = typeof value === 'number';
    if (lonely >= 0 && !here) found.push(lonely);
    lonely = here && !before ? row : -1;
    before = here;
  }
  if (lonely >= 0) found.push(lonely);
  return found.length > 0 ? found : null;
}

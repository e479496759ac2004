/** Charts as files: the picture as it is seen, the points as they were reported. */

import type { Chart } from './chart';
import type { Session } from './session';
import { colorOf, cssColor, dashOf } from './theme';

const LEGEND = 12;
const [TITLE, LINE, MARGIN, ENTRY] = [30, 20, 12, 110];

/** One line per point of the trials that are not hidden; times are seconds since the epoch. */
export function csvOf(session: Session, metrics: string[]): string {
  const { noun, nameOf } = session.names;
  const lines = [`metric,${noun},step,time_s,value`];
  for (const metric of metrics) {
    for (const [trial, series] of session.series.metrics.get(metric) ?? []) {
      if (session.choices.hidden.has(trial)) continue;
      const { steps, times, values } = series;
      const head = `${quoted(metric)},${noun === 'trial' ? trial : quoted(nameOf(trial))}`;
      for (let row = 0; row < series.length; row++) {
        lines.push(`${head},${steps[row]},${times[row]},${values[row]}`);
      }
    }
  }
  return `${lines.join('\n')}\n`;
}

function quoted(text: string): string {
  // A spreadsheet takes a cell that begins like this for a formula.
  const safe = /^[=+\-@\t]/.test(text) ? `'${text}` : text;
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The charts below each other on the colour of the page, with their names and a legend. */
export function pictureOf(session: Session, charts: Chart[]): HTMLCanvasElement {
  const drawn = charts.flatMap((chart) => (chart.canvas ? [{ chart, canvas: chart.canvas }] : []));
  const scale = devicePixelRatio;
  const canvas = document.createElement('canvas');
  const trials = legendOf(session, charts);
  const width = Math.max(...drawn.map(({ canvas }) => canvas.width), 1);
  const columns = Math.max(Math.floor(width / scale / ENTRY), 1);
  const legend = Math.ceil(trials.length / columns) * LINE + MARGIN;
  canvas.width = width;
  canvas.height = drawn.reduce((sum, { canvas }) => sum + canvas.height + TITLE * scale, legend * scale);
  const context = canvas.getContext('2d');
  if (!context) return canvas;
  const root = charts[0]?.root ?? document.body;
  context.fillStyle = cssColor(root, '--at-back', '#fff');
  context.fillRect(0, 0, canvas.width, canvas.height);
  let top = 0;
  for (const { chart, canvas: source } of drawn) {
    context.fillStyle = cssColor(root, '--at-ink', '#222');
    context.font = `600 ${13 * scale}px ${cssColor(root, '--at-font', 'sans-serif')}`;
    context.fillText(`${session.experiment?.name ?? ''}  ${chart.metric}`, MARGIN * scale, top + 20 * scale);
    context.drawImage(source, 0, top + TITLE * scale);
    top += source.height + TITLE * scale;
  }
  drawLegend(session, context, root, trials, { top, columns, scale });
  return canvas;
}

function drawLegend(
  session: Session,
  context: CanvasRenderingContext2D,
  root: HTMLElement,
  trials: number[],
  { top, columns, scale }: { top: number; columns: number; scale: number },
): void {
  context.font = `${11 * scale}px ${cssColor(root, '--at-font', 'sans-serif')}`;
  context.fillStyle = cssColor(root, '--at-ink', '#222');
  context.lineWidth = 3 * scale;
  trials.forEach((trial, i) => {
    const x = (MARGIN + (i % columns) * ENTRY) * scale;
    const y = top + (Math.floor(i / columns) * LINE + 10) * scale;
    context.strokeStyle = colorOf(trial);
    context.setLineDash(dashOf(trial).map((length) => length * scale));
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + 20 * scale, y);
    context.stroke();
    const star = trial === session.best()?.number ? ' ★' : '';
    context.fillText(`${session.names.nameOf(trial)}${star}`, x + 26 * scale, y + 4 * scale);
  });
}

/** The trials a legend names: the best and the pinned first; of many only some. */
function legendOf(session: Session, charts: Chart[]): number[] {
  const shown = new Set(charts.flatMap((chart) => chart.curves.map(({ trial }) => trial)));
  const first = [session.best()?.number, ...session.choices.pinned, session.choices.trial];
  const wanted = [...first.filter((trial) => trial !== undefined), ...shown];
  return [...new Set(wanted)].filter((trial) => shown.has(trial)).slice(0, LEGEND);
}

/** Takes the charts that views give away into notebooks. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { MimeData } from '@lumino/coreutils';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { Drag } from '@lumino/dragdrop';
import { h } from '../../widgets/lib/dom';
import { DRAG_CHART, INSERT_CHART } from '../../widgets/lib/give_chart';
import type { GivenChart } from '../../widgets/lib/give_chart';
import { chartCell } from './chart_cell';
import type { ChartCell } from './chart_cell';

export const INSERT_SHOWN_CHART = 'autotrain:insert-chart';
const GIVE = '.at-give:not([hidden])';
const BUTTON = `.autotrain ${GIVE}`;
const CHARTS = `.at-charts-part:has(${GIVE})`;
const CELLS = 'application/vnd.jupyter.cells'; // what notebooks take
const SHOWN_MS = 5000;

export function takeCharts(notebooks: INotebookTracker, trans: TranslationBundle): void {
  document.body.classList.add('jp-Autotrain-takes-charts');
  document.body.addEventListener(INSERT_CHART, (event) => {
    const { detail, target } = event as CustomEvent<GivenChart>;
    const panel = panelOf(notebooks, target as Node);
    if (panel) insert(panel, target as Node, cellOf(detail));
    else Notification.warning(trans.__('No notebook is open: open one first.'), { autoClose: SHOWN_MS });
  });
  document.body.addEventListener(DRAG_CHART, (event) => {
    drag((event as CustomEvent<GivenChart>).detail);
  });
}

/** The command does what the button of a chart does: of the chart below the pointer, else of one that is in use. */
export function addInsertCommand(
  app: JupyterFrontEnd,
  notebooks: INotebookTracker,
  trans: TranslationBundle,
): void {
  const chart = ({ pointed }: ReadonlyPartialJSONObject): HTMLElement | undefined =>
    pointed === true ? pointedChart(app) : chartInUse(app, notebooks);
  app.commands.addCommand(INSERT_SHOWN_CHART, {
    label: trans.__('Insert Chart into Notebook'),
    caption: trans.__('Insert the shown chart into the notebook as a picture'),
    describedBy: {
      args: {
        type: 'object',
        properties: { pointed: { type: 'boolean', description: trans.__('The chart below the pointer.') } },
      },
    },
    isEnabled: (args) => chart(args) !== undefined,
    execute: (args) => {
      chart(args)?.click();
    },
  });
  const selector = `.autotrain ${CHARTS}`;
  app.contextMenu.addItem({ command: INSERT_SHOWN_CHART, selector, args: { pointed: true }, rank: 1 });
}

function pointedChart(app: JupyterFrontEnd): HTMLElement | undefined {
  return shownButton(app.contextMenuHitTest((node) => node.matches(CHARTS)));
}

/** In the active cell, else in what is in front, else anywhere. */
function chartInUse(app: JupyterFrontEnd, notebooks: INotebookTracker): HTMLElement | undefined {
  const { currentWidget } = app.shell;
  const cell = currentWidget === notebooks.currentWidget ? notebooks.activeCell : null;
  return shownButton(cell?.node) ?? shownButton(currentWidget?.node) ?? shownButton(document.body);
}

function shownButton(node: HTMLElement | undefined): HTMLElement | undefined {
  const buttons = [...(node?.querySelectorAll<HTMLElement>(BUTTON) ?? [])];
  return buttons.find((button) => button.checkVisibility());
}

/** The notebook that the chart is in, else the one that was used last. */
function panelOf(notebooks: INotebookTracker, chart: Node): NotebookPanel | null {
  return notebooks.find((panel) => panel.node.contains(chart)) ?? notebooks.currentWidget;
}

/** Below the cell that the chart is in, else below the active one. */
function insert({ content }: NotebookPanel, chart: Node, cell: ChartCell): void {
  const own = content.widgets.findIndex((widget) => widget.node.contains(chart));
  const index = (own < 0 ? content.activeCellIndex : own) + 1;
  content.model?.sharedModel.insertCell(index, { ...cell });
  content.activeCellIndex = index;
  const inserted = content.widgets[index];
  if (inserted) void content.scrollToCell(inserted);
}

function drag(chart: GivenChart): void {
  const mimeData = new MimeData();
  mimeData.setData(CELLS, [cellOf(chart)]);
  const dragImage = h('img', { class: 'jp-Autotrain-dragged', src: chart.picture.toDataURL(), alt: '' });
  const dragged = new Drag({ mimeData, dragImage, proposedAction: 'copy', supportedActions: 'copy' });
  void dragged.start(chart.x, chart.y);
}

function cellOf({ id, experiment, metric, picture }: GivenChart): ChartCell {
  return chartCell(id, experiment, metric, picture.toDataURL('image/png').split(',')[1] ?? '');
}

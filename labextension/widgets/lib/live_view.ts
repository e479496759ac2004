/** The live view of one experiment: all its parts, one below the other. */

import { h } from './dom';
import { drawLoop } from './draw_loop';
import { fold } from './fold';
import { Header } from './header';
import { PicturePanel } from './images';
import { keepKeys } from './keys';
import { Lineage } from './lineage';
import { LogPanel } from './log';
import { ChartPanel } from './panel';
import type { Session } from './session';
import { StatusLine } from './status';
import { TrialsTable } from './trials';
import { Warnings } from './warnings';

/** Draw it into `el`, and again with each change; gives the way to end that. */
export function liveView(session: Session, el: HTMLElement, folded: boolean): () => void {
  const header = new Header(session);
  const charts = new ChartPanel(session);
  const status = new StatusLine(session);
  const parts = [
    header,
    new Warnings(session),
    charts,
    new TrialsTable(session),
    new Lineage(session),
    new PicturePanel(session),
    new LogPanel(session),
    status,
  ];
  const { trans, experiment } = session;
  const label = experiment ? trans.__('Experiment %1', experiment.name) : trans.__('Experiment');
  const root = h('article', { class: 'autotrain', 'aria-label': label });
  root.append(...parts.map((part) => part.root));
  if (folded) header.root.firstElementChild?.append(fold(root, trans));
  const endKeys = keepKeys(root);
  el.append(root);
  const endDrawing = drawLoop(session, parts);
  return () => {
    endDrawing();
    endKeys();
    charts.destroy();
    status.destroy();
    root.remove();
  };
}

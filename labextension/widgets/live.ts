/** The live view of one experiment. */

import type { AnyModel } from '@anywidget/types';
import 'uplot/dist/uPlot.min.css';
import './live.css';
import './notes.css';
import { fold } from './lib/fold';
import { h } from './lib/dom';
import { Header } from './lib/header';
import { PicturePanel } from './lib/images';
import { keepKeys } from './lib/keys';
import { LogPanel } from './lib/log';
import { ChartPanel } from './lib/panel';
import { Session } from './lib/session';
import { StatusLine } from './lib/status';
import { TrialsTable } from './lib/trials';
import { Warnings } from './lib/warnings';

interface Context {
  model: AnyModel;
  el: HTMLElement;
}

/** Drawing takes at most one part in this many of the page's time, however many curves there are. */
const SHARE = 4;

/** Called once per model: `initialize` opens the session, and every view that `render` makes draws from it. */
export default function live(): object {
  let session: Session | undefined;
  return {
    initialize({ model }: Context): () => void {
      const opened = (session = new Session(model));
      return () => {
        opened.close();
      };
    },
    render({ model, el }: Context): (() => void) | undefined {
      return session && view(session, el, model.get('folded') === true);
    },
  };
}

function view(session: Session, el: HTMLElement, folded: boolean): () => void {
  const header = new Header(session);
  const charts = new ChartPanel(session);
  const trials = new TrialsTable(session);
  const log = new LogPanel(session);
  const status = new StatusLine(session);
  const warnings = new Warnings(session);
  const pictures = new PicturePanel(session);
  const parts = [header, warnings, charts, trials, pictures, log, status];
  const name = session.experiment?.name ?? 'experiment';
  const root = h('article', { class: 'autotrain', 'aria-label': `Experiment ${name}` });
  root.append(...parts.map((part) => part.root));
  if (folded) header.root.firstElementChild?.append(fold(root));
  const endKeys = keepKeys(root);
  el.append(root);
  let frame = 0;
  let rest = 0;
  let begun = 0;
  let took = 0;
  const update = (): void => {
    frame = 0;
    begun = performance.now();
    for (const part of parts) part.update();
    // Charts paint in a microtask of their own, which comes before this one.
    queueMicrotask(() => {
      took = performance.now() - begun;
    });
  };
  const draw = (): void => {
    rest = 0;
    frame = requestAnimationFrame(update);
  };
  const schedule = (): void => {
    if (frame || rest) return;
    const left = begun + took * SHARE - performance.now();
    if (left > 0) rest = window.setTimeout(draw, left);
    else draw();
  };
  const unlisten = session.listen(schedule);
  // Clocks go on between frames.
  const clock = window.setInterval(() => {
    if (session.experiment?.final === false) schedule();
  }, 1000);
  update();
  return () => {
    unlisten();
    endKeys();
    window.clearInterval(clock);
    window.clearTimeout(rest);
    cancelAnimationFrame(frame);
    charts.destroy();
    status.destroy();
    root.remove();
  };
}

/** The preview of a plan: the model, the machine, a step, and what else could be done. */

import type { AnyModel } from '@anywidget/types';
import './live.css';
import './plan.css';
import { h, setText } from './lib/dom';
import { keepKeys } from './lib/keys';
import { tellOpened } from './lib/opened';
import { pageTranslator } from './lib/translator';
import { Candidates } from './plan/candidates';
import { Detail } from './plan/detail';
import { GraphView } from './plan/graph';
import { Head } from './plan/head';
import { Memory } from './plan/memory';
import { MeshView } from './plan/mesh';
import { Session } from './plan/session';
import { Sliders, sentence } from './plan/sliders';
import { Timeline } from './plan/timeline';
import { gapText } from './plan/texts';
import { seconds } from './plan/format';

interface Context {
  model: AnyModel;
  el: HTMLElement;
}

/** Called once per model: `initialize` opens the session, and every view that `render` makes draws from it. */
export default function plan(): object {
  let session: Session | undefined;
  return {
    initialize({ model }: Context): () => void {
      const opened = (session = new Session(model, pageTranslator()));
      tellOpened(model.get('view_id'));
      return () => {
        opened.close();
      };
    },
    render({ el }: Context): (() => void) | undefined {
      return session && page(session, el);
    },
  };
}

function page(session: Session, el: HTMLElement): () => void {
  const [head, sliders, graph, mesh, detail] = [
    new Head(session),
    new Sliders(session),
    new GraphView(session),
    new MeshView(session),
    new Detail(session),
  ];
  const below = [new Timeline(session), new Memory(session), new Candidates(session)];
  const status = h('p', { class: 'at-status', role: 'status', 'aria-live': 'polite' });
  const label = session.trans.__('Plan of %1', session.base.name);
  const side = h('div', { class: 'at-side' }, mesh.root, detail.root);
  const root = h('article', { class: 'autotrain at-preview', 'aria-label': label });
  root.append(head.root, sliders.root, h('div', { class: 'at-pair' }, graph.root, side));
  root.append(...below.map((part) => part.root), status);
  const endKeys = keepKeys(root);
  el.append(root);
  const parts = [head, sliders, graph, mesh, detail, ...below];
  let frame = 0;
  const update = (): void => {
    frame = 0;
    for (const part of parts) part.update();
    root.setAttribute('aria-busy', String(session.waiting));
    if (!session.waiting) setText(status, spoken(session));
  };
  const unlisten = session.listen(() => {
    frame ||= requestAnimationFrame(update);
  });
  update();
  return () => {
    unlisten();
    endKeys();
    cancelAnimationFrame(frame);
    root.remove();
  };
}

function spoken(session: Session): string {
  const { view, base, trans } = session;
  if (view !== base || session.refusal) return sentence(session);
  const { cluster, cost } = view;
  return trans.__(
    'Planned for %1 × %2: %3 per step. %4.',
    cluster.devices,
    cluster.device,
    seconds(cost.step_s),
    gapText(view, trans),
  );
}

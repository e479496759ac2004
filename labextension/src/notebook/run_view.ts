/** The output of a run in a notebook: its curves as the notebook keeps them, then live from the server, with no kernel. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { h, setText } from '../../widgets/lib/dom';
import { drawLoop } from '../../widgets/lib/draw_loop';
import { Header } from '../../widgets/lib/header';
import { keepKeys } from '../../widgets/lib/keys';
import { liveView } from '../../widgets/lib/live_view';
import { ChartPanel } from '../../widgets/lib/panel';
import { Session } from '../../widgets/lib/session';
import type { Wire } from '../../widgets/lib/session';
import { eachChange } from '../home/model_signal';
import type { RestWire } from '../home/rest_wire';
import { snapshotOf } from './stored_frames';
import type { StoredRun } from './stored_run';

export class RunView {
  readonly #message = h('p', { class: 'jp-Autotrain-message', role: 'status', hidden: true });
  readonly #body = h('div');
  readonly #live: Session;
  readonly #unlisten: () => void;
  readonly #endTelling: () => void;
  #isLive = false;
  #end: () => void;

  /** Follows from now on; `wire` is this view's own. */
  constructor(
    node: HTMLElement,
    run: StoredRun,
    private readonly wire: RestWire,
    private readonly trans: TranslationBundle,
  ) {
    node.replaceChildren(this.#message, this.#body);
    this.#end = keptView(new Session(keptWire(run), trans), this.#body);
    this.#live = new Session(wire, trans);
    this.#unlisten = this.#live.listen(() => {
      this.#goLive();
      wire.wantSeen(this.#live);
    });
    this.#endTelling = eachChange(() => {
      this.#tell();
    }, wire.changed);
    void wire.follow();
  }

  destroy(): void {
    this.#endTelling();
    this.#unlisten();
    this.#end();
    this.#live.close();
    this.wire.dispose();
    this.#message.remove();
    this.#body.remove();
  }

  /** Only when its curves are there, too: until then those that are kept stay. */
  #goLive(): void {
    const { details } = this.wire;
    const isKnown = details && (this.#live.metrics().length > 0 || details.metrics.length === 0);
    if (this.#isLive || !isKnown) return;
    this.#isLive = true;
    this.#end();
    this.#end = liveView(this.#live, this.#body, false);
    this.#tell();
  }

  #tell(): void {
    const text = this.#text();
    setText(this.#message, text);
    this.#message.hidden = text === '';
  }

  #text(): string {
    const { trans, wire } = this;
    if (wire.isDeleted) return trans.__('This experiment was deleted. This is what the notebook kept.');
    if (wire.isConnected && !wire.error) return '';
    if (this.#isLive)
      return wire.isConnected ? wire.error : trans.__('The server does not answer. Trying again…');
    return trans.__('The server did not answer. This is what the notebook kept.');
  }
}

/** What a file keeps never changes, and nothing can be asked of it. */
function keptWire(run: StoredRun): Wire {
  const nothing = (): void => undefined;
  return { get: () => snapshotOf(run), send: nothing, on: nothing, off: nothing };
}

function keptView(session: Session, el: HTMLElement): () => void {
  const header = new Header(session);
  const charts = new ChartPanel(session);
  const name = session.experiment?.name ?? '';
  const root = h('article', { class: 'autotrain jp-mod-kept', 'aria-label': name }, header.root, charts.root);
  const endKeys = keepKeys(root);
  el.append(root);
  const endDrawing = drawLoop(session, [header, charts]);
  return () => {
    endDrawing();
    endKeys();
    charts.destroy();
    root.remove();
  };
}

/** Renders the MIME type of runs, also in notebooks that are not trusted: it takes data for data. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';
import type { Changes } from '../home/changes';
import { RestWire } from '../home/rest_wire';
import { RunView } from './run_view';
import { RUN_MIME_TYPE, storedRun } from './stored_run';
import type { StoredRun } from './stored_run';

const SETTLE_MS = 250; // a running cell shows its live view below this output, which hides it

export interface RunServices {
  changes: Changes;
  commands: CommandRegistry;
  trans: TranslationBundle;
}

class RunRenderer extends Widget implements IRenderMime.IRenderer {
  #run: StoredRun | undefined;
  #view: RunView | undefined;
  #timer = 0;
  readonly #seen = new IntersectionObserver((entries) => {
    this.#showOrHide(entries.at(-1)?.isIntersecting === true);
  });

  constructor(private readonly services: RunServices) {
    super();
    this.addClass('jp-Autotrain-run');
    this.#seen.observe(this.node);
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const run = storedRun(model.data[RUN_MIME_TYPE]);
    const isOther = run?.id !== this.#run?.id;
    this.#run = run;
    if (isOther) this.#hide();
    if (!run) this.node.textContent = textOf(model.data['text/plain']);
    else if (isOther) this.#soon();
    return Promise.resolve();
  }

  override dispose(): void {
    if (this.isDisposed) return;
    this.#seen.disconnect();
    this.#hide();
    super.dispose();
  }

  /** What is only scrolled away keeps its height, and its view; what is hidden has none. */
  #showOrHide(isSeen: boolean): void {
    if (isSeen) this.#soon();
    else if (this.node.getClientRects().length === 0) this.#hide();
  }

  #soon(): void {
    window.clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => {
      this.#show();
    }, SETTLE_MS);
  }

  #show(): void {
    if (this.#view || !this.#run || this.node.getClientRects().length === 0) return;
    const { changes, commands, trans } = this.services;
    const { id } = this.#run;
    const stop = async (trials: number[] | null): Promise<void> => {
      await commands.execute('autotrain:stop', trials ? { id, trials } : { id });
    };
    this.#view = new RunView(this.node, this.#run, new RestWire(id, changes, { stop }), trans);
  }

  #hide(): void {
    window.clearTimeout(this.#timer);
    this.#view?.destroy();
    this.#view = undefined;
  }
}

function textOf(text: unknown): string {
  return Array.isArray(text) ? text.join('') : typeof text === 'string' ? text : '';
}

/** Before `text/html` (50), behind the views of widgets (0). */
export function runRendererFactory(services: RunServices): IRenderMime.IRendererFactory {
  return {
    safe: true,
    mimeTypes: [RUN_MIME_TYPE],
    defaultRank: 10,
    createRenderer: () => new RunRenderer(services),
  };
}

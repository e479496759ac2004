/** Renders the output of a kernel's view once its model is there; the widget manager reports an error where it is not. */

import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { Message } from '@lumino/messaging';
import { Panel } from '@lumino/widgets';
import type { Widget } from '@lumino/widgets';
import type { OpenedViews } from './opened_views';

export const VIEW_MIME_TYPE = 'application/vnd.autotrain.view+json';
const WIDGET_MIME_TYPE = 'application/vnd.jupyter.widget-view+json';

class ViewRenderer extends Panel implements IRenderMime.IRenderer {
  #model: IRenderMime.IMimeModel | undefined;

  constructor(private readonly views: OpenedViews) {
    super();
    views.opened.connect(this.#opened, this);
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.#model = model;
    return this.#show();
  }

  override dispose(): void {
    this.views.opened.disconnect(this.#opened, this);
    super.dispose();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    void this.#show();
  }

  #opened(_: OpenedViews, id: string): void {
    if (id === viewIn(this.#model)) void this.#show();
  }

  /** The renderer of widgets is its own: it is the notebook's, not the page's. */
  async #show(): Promise<void> {
    const id = viewIn(this.#model);
    const rendermime = registryOf(this);
    if (!this.#model || id === undefined || !rendermime || this.widgets.length > 0) return;
    if (!this.views.has(id, rendermime)) return;
    const renderer = rendermime.createRenderer(WIDGET_MIME_TYPE);
    this.addWidget(renderer);
    await renderer.renderModel(this.#model);
  }
}

function viewIn(model: IRenderMime.IMimeModel | undefined): string | undefined {
  const data = model?.data[VIEW_MIME_TYPE] as { view?: unknown } | undefined;
  return typeof data?.view === 'string' ? data.view : undefined;
}

/** That of the output area around it; undefined before it is in one. */
function registryOf(widget: Widget): IRenderMimeRegistry | undefined {
  let around = widget.parent;
  while (around && !('rendermime' in around)) around = around.parent;
  return (around as { rendermime: IRenderMimeRegistry } | null)?.rendermime;
}

/** Before the views of widgets (0). */
export function viewRendererFactory(views: OpenedViews): IRenderMime.IRendererFactory {
  return {
    safe: false,
    mimeTypes: [VIEW_MIME_TYPE],
    defaultRank: -10,
    createRenderer: () => new ViewRenderer(views),
  };
}

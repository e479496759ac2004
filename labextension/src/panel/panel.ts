/** The main-area panel of one experiment: what the live view shows, with no kernel, and more about it on further pages. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import { ParallelCoordinates } from '../../widgets/charts/parallel_coordinates';
import { h } from '../../widgets/lib/dom';
import { drawLoop } from '../../widgets/lib/draw_loop';
import type { Part } from '../../widgets/lib/draw_loop';
import { Header } from '../../widgets/lib/header';
import { PicturePanel } from '../../widgets/lib/images';
import { Lineage } from '../../widgets/lib/lineage';
import { LogPanel } from '../../widgets/lib/log';
import { ChartPanel } from '../../widgets/lib/panel';
import { Session } from '../../widgets/lib/session';
import { StatusLine } from '../../widgets/lib/status';
import { TrialsTable } from '../../widgets/lib/trials';
import { Warnings } from '../../widgets/lib/warnings';
import { CodeView } from '../code/code_view';
import type { Changes } from '../home/changes';
import { eachChange } from '../home/model_signal';
import { RestWire } from '../home/rest_wire';
import { experimentsIcon } from '../icon';
import { Actions } from './actions';
import { Details } from './details';
import { Messages } from './messages';
import { Tabs } from './tabs';
import { Usage } from './usage';

/** What a panel is made with. */
export interface PanelServices {
  changes: Changes;
  commands: CommandRegistry;
  trans: TranslationBundle;
}

/** Follows its experiment while it is shown. */
export class ExperimentPanel extends Widget {
  readonly wire: RestWire;
  readonly session: Session;
  readonly #charts: ChartPanel;
  readonly #status: StatusLine;
  readonly #parallel: ParallelCoordinates;
  readonly #usage: Usage;
  readonly #code: CodeView;
  readonly #parts: Part[];
  #endDrawing: (() => void) | undefined;

  constructor(
    readonly experimentId: string,
    private readonly services: PanelServices,
  ) {
    super();
    const { changes, commands, trans } = services;
    this.wire = new RestWire(experimentId, changes, {
      stop: async (trials) => {
        const chosen = trials === null ? {} : { trials };
        await commands.execute('autotrain:stop', { id: experimentId, ...chosen });
      },
    });
    this.session = new Session(this.wire, trans);
    this.#charts = new ChartPanel(this.session);
    this.#status = new StatusLine(this.session);
    this.#parallel = new ParallelCoordinates(this.session);
    this.#usage = new Usage(experimentId, this.session, trans);
    this.#code = new CodeView({ experimentId, trans });
    this.#parts = this.#build();
    this.#label(trans);
    eachChange(() => {
      this.#changed();
    }, this.wire.changed);
  }

  override dispose(): void {
    if (this.isDisposed) return;
    this.#endDrawing?.();
    this.session.close();
    this.wire.dispose();
    this.#charts.destroy();
    this.#status.destroy();
    this.#parallel.destroy();
    this.#usage.destroy();
    this.#code.destroy();
    super.dispose();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    if (this.isVisible) this.#begin();
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.#begin();
  }

  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this.#end();
  }

  protected override onBeforeDetach(message: Message): void {
    super.onBeforeDetach(message);
    this.#end();
  }

  /** Keys go to the panel, and Tab to what is in it. */
  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this.node.focus();
  }

  #begin(): void {
    this.#endDrawing ??= drawLoop(this.session, this.#parts);
    void this.wire.follow();
  }

  #end(): void {
    this.#endDrawing?.();
    this.#endDrawing = undefined;
    this.wire.rest();
  }

  #build(): Part[] {
    const { session, wire } = this;
    const { commands, trans } = this.services;
    const actions = new Actions(wire, commands, trans);
    const messages = new Messages(wire, trans);
    const header = new Header(session);
    const overview = [
      new Warnings(session),
      this.#charts,
      new TrialsTable(session),
      new Lineage(session),
      new PicturePanel(session),
      new LogPanel(session),
    ];
    const details = new Details(wire, trans);
    const tabs = this.#tabs(overview.map(rootOf), details);
    const root = h('article', { class: 'autotrain jp-Autotrain-panelBody' });
    const bar = h('div', { class: 'at-row jp-Autotrain-panelBar' }, tabs.bar, actions.root);
    const content = [header.root, bar, ...tabs.pages, this.#status.root];
    const body = h('div', { class: 'jp-Autotrain-panelContent' }, ...content);
    root.append(messages.root, body);
    this.node.append(root);
    return [
      messages,
      actions,
      header,
      ...overview,
      this.#parallel,
      this.#usage,
      details,
      this.#status,
      { update: this.#want },
      {
        update: () => {
          body.hidden = wire.isDeleted && !wire.details;
        },
      },
    ];
  }

  #tabs(overview: HTMLElement[], details: Details): Tabs {
    const { trans } = this.services;
    return new Tabs(trans.__('Pages of the experiment'), [
      { name: trans.__('Overview'), node: h('div', { class: 'jp-Autotrain-page' }, ...overview) },
      {
        name: trans.__('Parallel coordinates'),
        node: this.#parallel.root,
        shown: () => {
          this.#parallel.update();
        },
      },
      {
        name: trans.__('Usage'),
        node: this.#usage.root,
        shown: () => {
          this.#usage.update();
        },
      },
      {
        name: trans.__('Code'),
        node: this.#code.root,
        shown: () => {
          void this.#code.show();
        },
      },
      {
        name: trans.__('Details'),
        node: details.root,
        shown: () => {
          details.update();
        },
      },
    ]);
  }

  /** The server is asked for the curves of what is looked at. */
  readonly #want = (): void => {
    this.wire.wantSeen(this.session);
  };

  #label(trans: TranslationBundle): void {
    this.id = `jp-autotrain-panel-${this.experimentId}`;
    this.addClass('jp-Autotrain-panel');
    this.title.label = this.experimentId;
    this.title.icon = experimentsIcon;
    this.title.closable = true;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Experiment'));
    this.node.tabIndex = 0;
  }

  #changed(): void {
    const { details } = this.wire;
    if (details) {
      const name = this.services.trans.__('Experiment %1', details.name);
      this.title.label = details.name;
      this.title.caption = name;
      this.node.setAttribute('aria-label', name);
    }
    this.session.changed();
  }
}

function rootOf(part: { root: HTMLElement }): HTMLElement {
  return part.root;
}

/** One plan: what the kernel sent, what is selected on the page, and the machine that is planned for. */

import type { AnyModel } from '@anywidget/types';
import { ENGLISH } from '../lib/translator';
import type { Translator } from '../lib/translator';
import type { GraphNode, Tensor, View } from './view';

/** Short enough to follow a slider, long enough not to send a request for every pixel. */
const PAUSE_MS = 60;

/** The machine and the inputs that the sliders are set to; `bandwidth` is a factor, inputs are 0 where not known. */
export interface Machine {
  devices: number;
  bandwidth: number;
  memory_bytes: number;
  batch: number;
  sequence: number;
}

/** Why an op is split as it is: a sentence, and the splits that there are; none of them where it is not known. */
export interface Explanation {
  text: string;
  heads: string[];
  rows: string[][];
}

interface Answer extends Explanation {
  kind: string;
  seq: number;
  view: View;
  seconds: number;
  op: string;
}

export class Session {
  /** The plan that was shown first; `view` is the one on the page. */
  readonly base: View;
  view: View;
  readonly explanations = new Map<string, Explanation>();
  /** Name of the op whose node is chosen: names stay when the model is planned again. */
  op = '';
  tensor = -1;
  /** The tensor under the pointer or the focus, before it is selected. */
  hovered = -1;
  stage = 0;
  machine: Machine;
  refusal = '';
  planned_s = 0;
  readonly #listeners = new Set<() => void>();
  #seq = 0;
  #shown = 0;
  /** The number of the request that the plan on the page answers; 0 is the first plan. */
  #plan = 0;
  #timer = 0;

  constructor(
    readonly model: AnyModel,
    readonly trans: Translator = ENGLISH,
  ) {
    this.base = this.view = model.get('view') as View;
    this.machine = machineOf(this.base);
    model.on('msg:custom', this.#receive);
    this.#reselect();
    this.#explain();
  }

  get waiting(): boolean {
    return this.#seq > this.#shown;
  }

  get changed(): boolean {
    return this.view !== this.base || this.refusal !== '' || this.waiting;
  }

  node(): GraphNode | undefined {
    return this.view.nodes.find((node) => node.op === this.op);
  }

  /** The tensor that the mesh shows: the one looked at, else the chosen one. */
  shownTensor(): Tensor | undefined {
    const id = this.hovered >= 0 ? this.hovered : this.tensor;
    return this.view.tensors.find((tensor) => tensor.id === id);
  }

  choose(node: GraphNode): void {
    this.op = node.op;
    this.hovered = -1;
    this.tensor = this.#tensorOf(node);
    if (!node.stages.includes(this.stage)) this.stage = node.stages[0] ?? 0;
    this.#explain();
    this.notify();
  }

  chooseTensor(id: number): void {
    this.tensor = id;
    this.notify();
  }

  hover(id: number): void {
    if (this.hovered === id) return;
    this.hovered = id;
    this.notify();
  }

  chooseStage(stage: number): void {
    this.stage = stage;
    this.notify();
  }

  /** Request the plan of another machine, after a short pause; only the newest request is sent. */
  replan(part: Partial<Machine>): void {
    this.machine = { ...this.machine, ...part };
    window.clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => {
      this.#seq += 1;
      const { batch, sequence } = this.machine;
      const inputs = { batch: batch || null, sequence: sequence || null };
      this.model.send({ kind: 'replan', seq: this.#seq, ...this.machine, ...inputs });
      this.notify();
    }, PAUSE_MS);
    this.notify();
  }

  reset(): void {
    window.clearTimeout(this.#timer);
    this.machine = machineOf(this.base);
    // Answers that are still to come are older than this.
    this.#seq += 1;
    this.#show(this.base, this.#seq, '');
  }

  listen(callback: () => void): () => void {
    this.#listeners.add(callback);
    return () => this.#listeners.delete(callback);
  }

  notify(): void {
    for (const callback of this.#listeners) callback();
  }

  close(): void {
    window.clearTimeout(this.#timer);
    this.model.off('msg:custom', this.#receive);
    this.#listeners.clear();
  }

  readonly #receive = (answer: Answer): void => {
    if (answer.kind === 'explanation') {
      if (answer.seq !== this.#plan) return;
      this.explanations.set(answer.op, answer);
      this.notify();
    } else if (answer.seq > this.#shown) {
      this.planned_s = answer.seconds;
      this.#show(answer.kind === 'plan' ? answer.view : this.view, answer.seq, answer.text);
    }
  };

  #show(view: View, seq: number, refusal: string): void {
    this.#shown = seq;
    this.refusal = refusal;
    if (view !== this.view) {
      this.view = view;
      this.#plan = view === this.base ? 0 : seq;
      this.explanations.clear();
      this.#reselect();
      this.#explain();
    }
    this.notify();
  }

  /** Keep the selection where the plan still has it; else select the op that holds most. */
  #reselect(): void {
    const { nodes, mesh, tensors } = this.view;
    if (!this.node()) this.op = heaviest(nodes)?.op ?? '';
    const chosen = this.node();
    if (chosen && !chosen.tensors.includes(this.tensor)) this.tensor = this.#tensorOf(chosen);
    if (!tensors.some((tensor) => tensor.id === this.hovered)) this.hovered = -1;
    if (this.stage >= mesh.stages) this.stage = 0;
  }

  /** The first tensor that is split, else the first. */
  #tensorOf(node: GraphNode): number {
    const split = node.tensors.find((id) =>
      this.view.tensors.some((one) => one.id === id && one.splits.length > 0),
    );
    return split ?? node.tensors[0] ?? -1;
  }

  #explain(): void {
    if (this.op && !this.explanations.has(this.op)) {
      this.model.send({ kind: 'explain', op: this.op, seq: this.#plan });
    }
  }
}

function heaviest(nodes: GraphNode[]): GraphNode | undefined {
  const inside = nodes.filter((node) => node.group >= 0 && node.parameters > 0);
  const among = inside.length > 0 ? inside : nodes;
  return [...among].sort((a, b) => b.parameters * b.count - a.parameters * a.count)[0];
}

export function machineOf(view: View): Machine {
  return {
    devices: view.cluster.devices,
    bandwidth: 1,
    memory_bytes: view.limit_bytes,
    batch: view.inputs?.batch ?? 0,
    sequence: view.inputs?.sequence ?? 0,
  };
}

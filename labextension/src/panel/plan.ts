/** The plan that an experiment was submitted with: how its model is to be split, beside other ways. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { h } from '../../widgets/lib/dom';
import { memoryText, percent, seconds } from '../../widgets/plan/format';
import type { Candidate } from '../../widgets/plan/view';
import { showPlan } from '../api/experiment';
import type { StoredPlan } from '../api/experiment';
import type { Fact } from './fact_list';
import { factList } from './fact_list';

export class PlanView {
  readonly root = h('div', { class: 'jp-Autotrain-page' });
  #isLoaded = false;

  constructor(
    private readonly id: string,
    private readonly trans: TranslationBundle,
  ) {}

  /** Ask for the plan, which never changes, and draw it; again where that has failed. */
  async load(): Promise<void> {
    if (this.#isLoaded) return;
    this.#isLoaded = true;
    try {
      this.#draw(await showPlan(this.id));
    } catch (error) {
      this.#isLoaded = false;
      this.root.replaceChildren(error instanceof Error ? error.message : String(error));
    }
  }

  #draw(plan: StoredPlan): void {
    const { trans } = this;
    const sentences = [...plan.notes, ...plan.caveats];
    this.root.replaceChildren(
      h('h5', { class: 'at-heading' }, trans.__('Plan of %1 on %2', plan.name, plan.cluster.name)),
      factList(planFacts(plan, trans)),
      ...(sentences.length > 0 ? [list(sentences)] : []),
      rankRows(plan, trans),
      candidateRows(plan, trans),
      h('pre', { class: 'at-log', tabindex: 0, 'aria-label': trans.__('The plan as code') }, plan.code),
    );
  }
}

export function planFacts(plan: StoredPlan, trans: TranslationBundle): Fact[] {
  const { mesh, cost, microbatches } = plan;
  const axes = mesh.axes.map((axis, i) => `${axis} ${mesh.shape[i] ?? 1}`).join(' × ');
  const stages = trans._n('%1 stage', '%1 stages', mesh.stages);
  const parts = trans._n('%1 microbatch', '%1 microbatches', microbatches);
  const gap = plan.gap === null ? trans.__('nothing is proved') : trans.__('at most %1', percent(plan.gap));
  return [
    [trans.__('Time of a step'), seconds(cost.step_s)],
    [trans.__('Split'), [axes, stages, parts].filter(Boolean).join(', ')],
    [trans.__('Memory of a rank'), `${memoryText(cost.peak_memory_bytes)} / ${memoryText(plan.limit_bytes)}`],
    [trans.__('Faster plans'), gap],
  ];
}

function rankRows({ ranks }: StoredPlan, trans: TranslationBundle): HTMLElement {
  const heads = [
    trans.__('Stage'),
    trans.__('Device'),
    trans.__('Ranks'),
    trans.__('Blocks'),
    trans.__('Memory'),
  ];
  const rows = ranks.map((rank) => [
    ...[String(rank.stage), rank.device, String(rank.ranks), String(rank.blocks)],
    memoryText(rank.peak_bytes),
  ]);
  return table(trans.__('Stages'), heads, rows);
}

function candidateRows({ candidates }: StoredPlan, trans: TranslationBundle): HTMLElement {
  const heads = [trans.__('Plan'), trans.__('Split'), trans.__('Step'), trans.__('Memory')];
  const rows = candidates.map((candidate) => candidateRow(candidate, trans));
  return table(trans.__('Plans side by side'), heads, rows);
}

function candidateRow(candidate: Candidate, trans: TranslationBundle): string[] {
  const { name, what, fits, reason, step_s, peak_memory_bytes } = candidate;
  if (step_s === null) return [name, what, reason || trans.__('does not fit'), ''];
  const memory = memoryText(peak_memory_bytes ?? 0);
  return [name, what, seconds(step_s), fits ? memory : trans.__('%1, does not fit', memory)];
}

function list(sentences: readonly string[]): HTMLElement {
  return h('ul', { class: 'jp-Autotrain-why' }, ...sentences.map((text) => h('li', {}, text)));
}

function table(caption: string, heads: readonly string[], rows: readonly string[][]): HTMLElement {
  const head = h('tr', {}, ...heads.map((text) => h('th', { scope: 'col' }, text)));
  const body = rows.map(([first = '', ...cells]) =>
    h('tr', {}, h('th', { scope: 'row' }, first), ...cells.map((text) => h('td', {}, text))),
  );
  return h(
    'table',
    { class: 'jp-Autotrain-table' },
    h('caption', {}, caption),
    h('thead', {}, head),
    h('tbody', {}, ...body),
  );
}

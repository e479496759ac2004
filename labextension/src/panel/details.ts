/** What an experiment was submitted with, why its trials wait, and where they run. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { h } from '../../widgets/lib/dom';
import { bytes } from '../../widgets/plan/format';
import { showWhy } from '../api/experiment';
import type { ExperimentDetails } from '../api/experiment';
import { searchText } from '../api/search_text';
import { placeOf } from '../home/rest_frames';
import type { RestWire } from '../home/rest_wire';
import type { Fact } from './fact_list';
import { factList } from './fact_list';
import { placesTable } from './places_table';
import { PlanView } from './plan';
import { rankTable, strategyFacts } from './strategy';

export class Details {
  readonly root = h('div', { class: 'jp-Autotrain-page' });
  readonly #plan: PlanView;
  readonly #why: Section;
  readonly #places: Section;
  readonly #resources: Section;
  readonly #strategy: Section;
  readonly #search: Section;
  readonly #header: Section;
  #shown = '';
  #version = 0;

  constructor(
    private readonly wire: RestWire,
    private readonly trans: TranslationBundle,
  ) {
    this.#plan = new PlanView(wire.id, trans);
    this.#why = new Section(trans.__('Why'));
    this.#places = new Section(trans.__('Where trials run'));
    this.#resources = new Section(trans.__('Resources of a trial'));
    this.#strategy = new Section(trans.__('Strategy'), this.#plan.root);
    this.#search = new Section(trans.__('Search'));
    this.#header = new Section(trans.__('Header'));
  }

  /** Drawn where it is seen, and only where something has changed. */
  update(): void {
    const { details, trials } = this.wire;
    if (!details || this.root.offsetParent === null) return;
    const rows = trials.map((trial) => [trial.state, trial.attempt, trial.blocked_by, placeOf(trial)]);
    const shown = JSON.stringify([details.state, details.reason, details.manager, details.warnings, rows]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#fill(details);
    void this.#loadWhy();
  }

  #fill(details: ExperimentDetails): void {
    const { trans } = this;
    this.#places.show(placesTable(this.wire.trials, trans));
    this.#resources.show(factList(resourceFacts(details, trans)));
    this.#strategy.show(this.#strategyOf(details));
    this.#search.show(factList(searchFacts(details, trans)));
    this.#header.show(h('pre', { class: 'at-log', tabindex: 0 }, details.header));
    this.#plan.root.hidden = !details.has_plan;
    if (details.has_plan) void this.#plan.load();
    if (this.root.childElementCount > 0) return;
    const sections = [this.#why, this.#places, this.#resources, this.#strategy, this.#search, this.#header];
    this.root.append(...sections.map(({ root }) => root));
  }

  #strategyOf(details: ExperimentDetails): HTMLElement {
    const facts = factList(strategyFacts(details, this.trans));
    const placed = this.wire.trials.filter(({ nodes, backend }) => nodes.length > 0 || backend);
    return h('div', {}, facts, rankTable(details, placed.at(-1), this.trans));
  }

  async #loadWhy(): Promise<void> {
    const version = ++this.#version;
    let sentences: string[];
    try {
      sentences = await showWhy(this.wire.id);
    } catch (error) {
      sentences = [error instanceof Error ? error.message : String(error)];
    }
    if (version !== this.#version) return;
    const nothing = this.trans.__('No trial is waiting, and none failed.');
    const texts = sentences.length > 0 ? sentences : [nothing];
    this.#why.show(h('ul', { class: 'jp-Autotrain-why' }, ...texts.map((text) => h('li', {}, text))));
  }
}

/** A part of the page. What is shown stays until other is to be: the focus, the scroll and what is selected in it, too. */
class Section {
  readonly root: HTMLElement;
  #content: HTMLElement = h('div');

  constructor(title: string, ...below: HTMLElement[]) {
    const heading = h('h4', { class: 'at-heading' }, title);
    this.root = h('section', { 'aria-label': title }, heading, this.#content, ...below);
  }

  show(content: HTMLElement): void {
    if (this.#content.isEqualNode(content)) return;
    this.#content.replaceWith(content);
    this.#content = content;
  }
}

function resourceFacts({ resources, backends }: ExperimentDetails, trans: TranslationBundle): Fact[] {
  const free = trans.__('no limit');
  const { cpus, gpus, memory_bytes, gpu_memory_bytes, adjacent } = resources;
  const facts: Fact[] = [
    [trans.__('Backends'), backends.join(', ')],
    [trans.__('CPUs per node'), cpus === null ? free : String(cpus)],
    [trans.__('Memory per node'), memory_bytes === null ? free : bytes(memory_bytes)],
    [trans.__('GPUs per node'), String(gpus)],
  ];
  if (gpu_memory_bytes !== null) facts.push([trans.__('Memory of a GPU'), bytes(gpu_memory_bytes)]);
  if (adjacent) facts.push([trans.__('GPUs side by side'), adjacent]);
  return facts;
}

function searchFacts(details: ExperimentDetails, trans: TranslationBundle): Fact[] {
  const { objective, tuner, concurrency, search } = details;
  const facts: Fact[] = [
    [trans.__('Trials'), String(details.trials)],
    [trans.__('At the same time'), String(concurrency)],
  ];
  if (objective) facts.push([trans.__('Objective'), `${objective.direction} ${objective.label}`]);
  const spaces = Object.entries(search);
  if (spaces.length > 0) facts.push([trans.__('Tuner'), tuner]);
  return [...facts, ...spaces.map(([name, space]): Fact => [name, searchText(space)])];
}

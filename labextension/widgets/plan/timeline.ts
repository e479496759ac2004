/** One step on a time axis, a row per stage. */

import { h } from '../lib/dom';
import type { Translator } from '../lib/translator';
import { Section, table } from './section';
import type { Session } from './session';
import { s } from '../lib/svg';
import type { Segment, View } from './view';
import { percent, seconds } from './format';

const [WIDTH, LEFT, ROW, GAP] = [940, 62, 22, 5];
const MOST_ROWS = 24;

/** Of what segments show, in the order of a legend. */
function wordsOf(trans: Translator): Record<string, string> {
  return {
    forward: trans.__('forward'),
    backward: trans.__('backward'),
    communication: trans.__('exposed communication'),
    optimizer: trans.__('optimizer'),
    bubble: trans.__('bubble (waiting)'),
  };
}

export class Timeline {
  readonly #body = h('div', { class: 'at-timeline-body' });
  readonly #legend = h('div', { class: 'at-legend' });
  readonly #section: Section;
  readonly root: HTMLElement;
  #drawn: View | undefined;

  constructor(readonly session: Session) {
    const chart = h('div', {}, this.#body, this.#legend);
    const { trans } = session;
    const table = (): HTMLElement => dataTable(session.view, trans);
    this.#section = new Section('timeline', trans.__('One step'), chart, table, trans);
    this.root = this.#section.root;
  }

  update(): void {
    const { view, trans } = this.session;
    if (this.#drawn === view) return;
    this.#drawn = view;
    const stages = shownStages(view);
    this.#body.replaceChildren(draw(view, stages, trans));
    this.#legend.replaceChildren(...legend(view, trans));
    this.#section.note(noteOf(view, stages.length, trans));
    this.#section.refresh();
  }
}

function noteOf({ timeline, mesh, microbatches, schedule }: View, shown: number, trans: Translator): string {
  const parts = trans._n('%1 microbatch', '%1 microbatches', microbatches);
  const sample = trans.__('%1 of %2 stages', shown, mesh.stages);
  return [
    seconds(timeline.step_s),
    ...(microbatches > 1 ? [parts] : []),
    ...(mesh.stages > 1 ? [schedule] : []),
    ...(shown < mesh.stages ? [sample] : []),
  ].join(', ');
}

function shownStages(view: View): number[] {
  const stages = Array.from({ length: view.mesh.stages }, (_, i) => i);
  const half = MOST_ROWS / 2;
  return stages.length > MOST_ROWS ? [...stages.slice(0, half), ...stages.slice(-half)] : stages;
}

function draw(view: View, stages: number[], trans: Translator): SVGElement {
  const { segments } = view.timeline;
  const end = Math.max(view.timeline.step_s, ...segments.map((segment) => segment.stop_s), 1e-12);
  const scale = (WIDTH - LEFT - 8) / end;
  const height = stages.length * (ROW + GAP) + 24;
  const rows = stages.map((stage, row) => {
    const mine = segments.filter((segment) => segment.stage === stage);
    const y = row * (ROW + GAP);
    return s(
      'g',
      { transform: `translate(0 ${y})` },
      s('text', { x: 0, y: ROW / 2 + 4 }, trans.__('stage %1', stage)),
      ...mine.map((segment) => bar(segment, scale, view.microbatches > 1, trans)),
    );
  });
  const spoken = totals(view, stages[0] ?? 0, trans).map(({ word, share }) => `${word} ${percent(share)}`);
  const step = seconds(view.timeline.step_s);
  return s(
    'svg',
    {
      viewBox: `0 0 ${WIDTH} ${height}`,
      width: '100%',
      role: 'img',
      'aria-label': trans.__('A step of %1: %2', step, spoken.join(', ')),
    },
    ...axis(end, scale, height),
    ...rows,
  );
}

function bar(segment: Segment, scale: number, isNumbered: boolean, trans: Translator): SVGElement {
  const x = LEFT + segment.start_s * scale;
  const width = Math.max((segment.stop_s - segment.start_s) * scale, 0.75);
  const number = isNumbered && segment.microbatch >= 0 ? String(segment.microbatch + 1) : '';
  const length = seconds(segment.stop_s - segment.start_s);
  const label = width > 60 ? length : width > 16 ? number : '';
  const word = wordsOf(trans)[segment.what] ?? segment.what;
  const told = number ? trans.__('%1 of microbatch %2', word, number) : word;
  const text =
    label && segment.what !== 'bubble'
      ? [s('text', { x: x + width / 2, y: ROW / 2 + 4, 'text-anchor': 'middle' }, label)]
      : [];
  return s(
    'g',
    { class: 'at-bar-part', 'data-what': segment.what },
    s('rect', { x: x.toFixed(2), y: 0, width: width.toFixed(2), height: ROW, rx: width > 6 ? 2 : 0 }),
    ...text,
    s('title', {}, `${told}: ${length}`),
  );
}

function axis(end: number, scale: number, height: number): SVGElement[] {
  const raw = end / 6;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw) ?? raw;
  const ticks = Array.from({ length: Math.floor(end / step) + 1 }, (_, i) => i * step);
  return ticks.map((tick) => {
    const x = LEFT + tick * scale;
    return s(
      'g',
      { class: 'at-axis' },
      s('path', { d: `M${x} 0V${height - 20}` }),
      s(
        'text',
        { x, y: height - 6, 'text-anchor': tick === 0 ? 'start' : x > WIDTH - 40 ? 'end' : 'middle' },
        tick === 0 ? '0' : seconds(tick),
      ),
    );
  });
}

interface Total {
  word: string;
  share: number;
  seconds: number;
}

function totals(view: View, stage: number, trans: Translator): Total[] {
  const mine = view.timeline.segments.filter((segment) => segment.stage === stage);
  return Object.entries(wordsOf(trans)).map(([what, word]) => {
    const spent = mine
      .filter((segment) => segment.what === what)
      .reduce((sum, segment) => sum + segment.stop_s - segment.start_s, 0);
    return { word, seconds: spent, share: spent / Math.max(view.timeline.step_s, 1e-12) };
  });
}

function legend(view: View, trans: Translator): HTMLElement[] {
  const used = new Set(view.timeline.segments.map((segment) => segment.what));
  return Object.entries(wordsOf(trans))
    .filter(([what]) => used.has(what))
    .map(([what, word]) => h('span', { 'data-what': what }, h('i', {}), word));
}

function dataTable(view: View, trans: Translator): HTMLElement {
  const rows = Array.from({ length: view.mesh.stages }, (_, stage) => [
    trans.__('stage %1', stage),
    ...totals(view, stage, trans).map((total) => `${seconds(total.seconds)} (${percent(total.share)})`),
  ]);
  const heads = ['', ...Object.values(wordsOf(trans))];
  return table(trans.__('Where a step of %1 goes', seconds(view.timeline.step_s)), heads, rows);
}

/** One step on a time axis, a row per stage. */

import { h } from '../lib/dom';
import { Section, table } from './section';
import type { Session } from './session';
import { s } from './svg';
import type { Segment, View } from './view';
import { percent, seconds } from './format';

const [WIDTH, LEFT, ROW, GAP] = [940, 62, 22, 5];
const WORDS: Record<string, string> = {
  forward: 'forward',
  backward: 'backward',
  communication: 'exposed communication',
  optimizer: 'optimizer',
  bubble: 'bubble (waiting)',
};
const MOST_ROWS = 24;

export class Timeline {
  readonly #body = h('div', { class: 'at-timeline-body' });
  readonly #legend = h('div', { class: 'at-legend' });
  readonly #section: Section;
  readonly root: HTMLElement;
  #drawn: View | undefined;

  constructor(readonly session: Session) {
    const chart = h('div', {}, this.#body, this.#legend);
    this.#section = new Section('timeline', 'One step', chart, () => dataTable(session.view));
    this.root = this.#section.root;
  }

  update(): void {
    const { view } = this.session;
    if (this.#drawn === view) return;
    this.#drawn = view;
    const stages = shownStages(view);
    this.#body.replaceChildren(draw(view, stages));
    this.#legend.replaceChildren(...legend(view));
    const sample = stages.length < view.mesh.stages ? `, ${stages.length} of ${view.mesh.stages} stages` : '';
    const parts = view.microbatches > 1 ? `, ${view.microbatches} microbatches, ${view.schedule}` : '';
    this.#section.note(`${seconds(view.timeline.step_s)}${parts}${sample}`);
    this.#section.refresh();
  }
}

function shownStages(view: View): number[] {
  const stages = Array.from({ length: view.mesh.stages }, (_, i) => i);
  const half = MOST_ROWS / 2;
  return stages.length > MOST_ROWS ? [...stages.slice(0, half), ...stages.slice(-half)] : stages;
}

function draw(view: View, stages: number[]): SVGElement {
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
      s('text', { x: 0, y: ROW / 2 + 4 }, `stage ${stage}`),
      ...mine.map((segment) => bar(segment, scale, view.microbatches > 1)),
    );
  });
  const spoken = totals(view, stages[0] ?? 0).map(
    ({ what, share }) => `${WORDS[what] ?? what} ${percent(share)}`,
  );
  return s(
    'svg',
    {
      viewBox: `0 0 ${WIDTH} ${height}`,
      width: '100%',
      role: 'img',
      'aria-label': `A step of ${seconds(view.timeline.step_s)}: ${spoken.join(', ')}`,
    },
    ...axis(end, scale, height),
    ...rows,
  );
}

function bar(segment: Segment, scale: number, numbered: boolean): SVGElement {
  const x = LEFT + segment.start_s * scale;
  const width = Math.max((segment.stop_s - segment.start_s) * scale, 0.75);
  const number = numbered && segment.microbatch >= 0 ? ` of microbatch ${segment.microbatch + 1}` : '';
  const length = seconds(segment.stop_s - segment.start_s);
  const label = width > 60 ? length : numbered && width > 16 && number ? String(segment.microbatch + 1) : '';
  const text =
    label && segment.what !== 'bubble'
      ? [s('text', { x: x + width / 2, y: ROW / 2 + 4, 'text-anchor': 'middle' }, label)]
      : [];
  return s(
    'g',
    { class: 'at-bar-part', 'data-what': segment.what },
    s('rect', { x: x.toFixed(2), y: 0, width: width.toFixed(2), height: ROW, rx: width > 6 ? 2 : 0 }),
    ...text,
    s('title', {}, `${WORDS[segment.what] ?? segment.what}${number}: ${length}`),
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

function totals(view: View, stage: number): { what: string; share: number; seconds: number }[] {
  const mine = view.timeline.segments.filter((segment) => segment.stage === stage);
  return Object.keys(WORDS).map((what) => {
    const spent = mine
      .filter((segment) => segment.what === what)
      .reduce((sum, segment) => sum + segment.stop_s - segment.start_s, 0);
    return { what, seconds: spent, share: spent / Math.max(view.timeline.step_s, 1e-12) };
  });
}

function legend(view: View): HTMLElement[] {
  const used = new Set(view.timeline.segments.map((segment) => segment.what));
  return Object.entries(WORDS)
    .filter(([what]) => used.has(what))
    .map(([what, word]) => h('span', { 'data-what': what }, h('i', {}), word));
}

export function dataTable(view: View): HTMLElement {
  const whats = Object.keys(WORDS);
  const rows = Array.from({ length: view.mesh.stages }, (_, stage) => [
    `stage ${stage}`,
    ...totals(view, stage).map((total) => `${seconds(total.seconds)} (${percent(total.share)})`),
  ]);
  const heads = ['', ...whats.map((what) => WORDS[what] ?? what)];
  return table(`Where a step of ${seconds(view.timeline.step_s)} goes`, heads, rows);
}

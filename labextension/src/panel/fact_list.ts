/** Names and what they stand for, one pair below the other. */

import { h } from '../../widgets/lib/dom';

export type Fact = [name: string, text: string];

export function factList(facts: readonly Fact[]): HTMLElement {
  const parts = facts.flatMap(([name, text]) => [h('dt', {}, name), h('dd', {}, text)]);
  return h('dl', { class: 'jp-Autotrain-facts-list' }, ...parts);
}

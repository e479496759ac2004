/** Marks what was looked for in a text that is drawn. */

import { h } from './dom';

const SYNTAX = /[\\^$.*+?()[\]{}|/]/g;

/**
 * Wrap each match in `<mark>`; small and capital letters are the same.
 * @returns The marks of each match: several where it goes over elements.
 */
export function highlight(root: Node, query: string): HTMLElement[][] {
  const pattern = new RegExp(query.replace(SYNTAX, '\\$&'), 'giu');
  const ranges = [...(root.textContent ?? '').matchAll(pattern)].map(({ index, 0: text }) => ({
    from: index,
    to: index + text.length,
    marks: [] as HTMLElement[],
  }));
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  while (walker.nextNode()) texts.push(walker.currentNode as Text);
  let begin = 0;
  let first = 0;
  for (const node of texts) {
    const end = begin + node.data.length;
    let rest = node;
    let at = begin;
    for (let i = first; i < ranges.length; i++) {
      const range = ranges[i];
      if (!range || range.from >= end) break;
      const from = Math.max(range.from, begin);
      const to = Math.min(range.to, end);
      const marked = rest.splitText(from - at);
      rest = marked.splitText(to - from);
      at = to;
      const mark = h('mark');
      marked.replaceWith(mark);
      mark.append(marked);
      range.marks.push(mark);
      if (range.to <= end) first = i + 1;
    }
    begin = end;
  }
  return ranges.map(({ marks }) => marks);
}

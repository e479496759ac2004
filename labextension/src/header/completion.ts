/** Completes keys, values, profiles and flags in the header of a cell; no kernel is asked. */

import type { CompletionHandler, ICompletionContext, ICompletionProvider } from '@jupyterlab/completer';
import { headerCompletions } from '../api/header';
import type { PathOf } from './checking';
import { isExperiment } from './header_lines';

type Reply = CompletionHandler.ICompletionItemsReply;

export class HeaderCompletions implements ICompletionProvider {
  readonly identifier = 'jupyter-autotrain:header';
  readonly rank = 1100; // what fits in a header goes before what kernels find

  constructor(private readonly pathOf: PathOf) {}

  isApplicable(context: ICompletionContext): Promise<boolean> {
    return Promise.resolve(this.pathOf(context.widget.node) !== undefined);
  }

  async fetch({ text, offset }: CompletionHandler.IRequest, { widget }: ICompletionContext): Promise<Reply> {
    const path = this.pathOf(widget.node);
    if (path === undefined || !isExperiment(text)) return { start: offset, end: offset, items: [] };
    const { start, matches } = await headerCompletions(text, offset, path);
    const items = matches.map(({ text, origin, title, description }) => ({
      label: text,
      insertText: text,
      // JupyterLab gives each item one line, and would break this one.
      type: ([origin, title].find(Boolean) ?? 'keyword').replaceAll(' ', '\u00a0'),
      documentation: description,
    }));
    return { start, end: offset, items };
  }
}

/** What is wrong, in words: one polite line, so that it is read out once. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { h, setText } from '../../widgets/lib/dom';
import type { RestWire } from '../home/rest_wire';

export class Messages {
  readonly root = h('p', { class: 'jp-Autotrain-message', role: 'status', hidden: true });

  constructor(
    private readonly wire: RestWire,
    private readonly trans: TranslationBundle,
  ) {}

  update(): void {
    const text = messageOf(this.wire, this.trans);
    this.root.hidden = text === '';
    setText(this.root, text);
  }
}

export function messageOf(wire: RestWire, trans: TranslationBundle): string {
  const { details } = wire;
  if (!wire.isConnected) return trans.__('The server does not answer. Trying again…');
  if (wire.isDeleted)
    return details
      ? trans.__('This experiment was deleted. This is what was known of it.')
      : trans.__('This experiment no longer exists.');
  if (wire.error) return wire.error;
  if (details && !details.final && !details.manager.alive)
    return trans.__('The manager is not running. Your next submit, stop or retry starts it.');
  return '';
}

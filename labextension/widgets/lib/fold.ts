/** A collapsed view that expands. */

import { h, setAttribute, setText } from './dom';
import type { Translator } from './translator';

/** Fold a view down to its header; the button opens and closes it. */
export function fold(root: HTMLElement, trans: Translator): HTMLElement {
  const toggle = (): void => {
    const folded = root.classList.toggle('at-folded');
    setText(button, folded ? trans.__('Show') : trans.__('Hide'));
    setAttribute(button, 'aria-expanded', String(!folded));
  };
  const button = h('button', { type: 'button', class: 'at-button', onclick: toggle });
  toggle();
  return button;
}

/** A collapsed view that expands. */

import { h, setAttribute, setText } from './dom';

/** Fold a view down to its header; the button opens and closes it. */
export function fold(root: HTMLElement): HTMLElement {
  const toggle = (): void => {
    const folded = root.classList.toggle('at-folded');
    setText(button, folded ? 'Show' : 'Hide');
    setAttribute(button, 'aria-expanded', String(!folded));
  };
  const button = h('button', { type: 'button', class: 'at-button', onclick: toggle });
  toggle();
  return button;
}

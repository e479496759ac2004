/** Keys pressed in a view belong to the view: the notebook around it must not take them for its commands. */

const SUPPRESS = 'data-lm-suppress-shortcuts';

/**
 * Keep keys within a view; gives the way to end that.
 *
 * JupyterLab handles keys before they reach the view, unless it finds this attribute; other front ends read them after the
 * view, so they are also stopped there. Saving the notebook stays possible from everywhere. The view itself takes the
 * focus of a press between its parts, which otherwise goes to the cell around it.
 */
export function keepKeys(root: HTMLElement): () => void {
  root.tabIndex = -1;
  root.setAttribute(SUPPRESS, 'true');
  const decide = (event: KeyboardEvent): void => {
    if (isSave(event)) root.removeAttribute(SUPPRESS);
    else root.setAttribute(SUPPRESS, 'true');
  };
  const keep = (event: Event): void => {
    if (!isSave(event as KeyboardEvent)) event.stopPropagation();
  };
  const kinds = ['keydown', 'keypress', 'keyup'];
  // On the window, in the first phase: before JupyterLab reads the attribute.
  window.addEventListener('keydown', decide, true);
  for (const kind of kinds) root.addEventListener(kind, keep);
  return () => {
    window.removeEventListener('keydown', decide, true);
    for (const kind of kinds) root.removeEventListener(kind, keep);
  };
}

function isSave(event: KeyboardEvent): boolean {
  return (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 's';
}

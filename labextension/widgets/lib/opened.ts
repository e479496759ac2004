/** Tells the page around that the model of a view has been opened: an output that waits for it can show it. */

export const VIEW_OPENED = 'autotrain:view-opened';

/** @param id The view's own id; nothing where it has none. */
export function tellOpened(id: unknown): void {
  document.dispatchEvent(new CustomEvent<unknown>(VIEW_OPENED, { detail: id }));
}

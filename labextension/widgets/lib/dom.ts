/** Elements in one call. */

type Attributes = Record<string, string | number | boolean | EventListener | undefined>;

/** Make an element: `on…` attributes are listeners, `true` is an empty attribute, `false` and undefined are none. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else setAttribute(element, name, value);
  }
  element.append(...children);
  return element;
}

/** Touch the page only where something changed: screen readers and selections stay undisturbed. */
export function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(
  element: HTMLElement,
  name: string,
  value: string | number | boolean | undefined,
): void {
  if (value === false || value === undefined) {
    element.removeAttribute(name);
    return;
  }
  const text = value === true ? '' : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

/** Arrow keys, Home and End move along a row of tabs or buttons; gives the new place. */
export function arrowTo(key: string, at: number, length: number): number | undefined {
  if (key === 'ArrowRight' || key === 'ArrowDown') return (at + 1) % length;
  if (key === 'ArrowLeft' || key === 'ArrowUp') return (at + length - 1) % length;
  if (key === 'Home') return 0;
  return key === 'End' ? length - 1 : undefined;
}

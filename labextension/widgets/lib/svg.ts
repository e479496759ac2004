/** SVG elements in one call. */

type Attributes = Record<string, string | number | EventListener | undefined>;

const NAMESPACE = 'http://www.w3.org/2000/svg';

/** As `h`, for SVG: `on…` attributes are listeners, undefined is none. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else if (value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

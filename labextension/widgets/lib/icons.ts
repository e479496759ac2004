/** Small pictures in buttons and rows. */

import { colorOf, dashOf } from './theme';

const SPACE = 'http://www.w3.org/2000/svg' as const;
const PATHS = {
  pin: 'M9.6 1.8l4.6 4.6-1.6.5-3 3-.4 3-6.1-6.1 3-.4 3-3zM5.6 10.4L2 14',
  clone: 'M6 6h7.5v7.5H6zM3.5 10H2.5V2.5H10v1',
  stop: 'M4 4h8v8H4z',
  image: 'M2.5 3.5h11v9h-11zM3 11l3.2-3.4 2.4 2.3 1.8-1.7L13 10.6',
};

function draw(size: [number, number], ...shapes: SVGElement[]): SVGSVGElement {
  const svg = document.createElementNS(SPACE, 'svg');
  const [width, height] = size;
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  svg.setAttribute('width', String(width));
  svg.setAttribute('height', String(height));
  svg.setAttribute('aria-hidden', 'true');
  svg.append(...shapes);
  return svg;
}

export function icon(name: keyof typeof PATHS): SVGSVGElement {
  const path = document.createElementNS(SPACE, 'path');
  path.setAttribute('d', PATHS[name]);
  return draw([16, 16], path);
}

/** The line of a trial, as charts draw it. */
export function swatch(trial: number): SVGSVGElement {
  const line = document.createElementNS(SPACE, 'path');
  line.setAttribute('d', 'M1 5h20');
  line.setAttribute('stroke', colorOf(trial));
  line.setAttribute('stroke-width', '3');
  line.setAttribute('stroke-dasharray', dashOf(trial).join(' '));
  return draw([22, 10], line);
}

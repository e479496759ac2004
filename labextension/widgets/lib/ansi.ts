/** Text with colour codes as elements: `ESC [ codes m` only, which is all that the kernel lets through. */

import { h } from './dom';

const CODES = /\x1b\[([0-9;]*)m/; // eslint-disable-line no-control-regex -- the escape character is what is matched
const OTHERS = /[\x00-\x08\x0b-\x1f\x7f]/g; // eslint-disable-line no-control-regex -- control characters are removed
const MARKS: Record<number, string> = {
  1: 'at-bold',
  2: 'at-dim',
  3: 'at-italic',
  4: 'at-underline',
  7: 'at-inverse',
  9: 'at-strike',
};

interface TextStyle {
  classes: string[];
  color: string;
  back: string;
}

/** One piece of text per change of style. The text never becomes markup. */
export function colored(text: string): Node[] {
  const parts = text.split(CODES);
  let style: TextStyle = { classes: [], color: '', back: '' };
  return parts.flatMap((part, i) => {
    if (i % 2 === 1) {
      style = read(part.split(';').map(Number), style);
      return [];
    }
    const plain = part.replace(OTHERS, '');
    return plain ? [element(plain, style)] : [];
  });
}

function element(text: string, { classes, color, back }: TextStyle): Node {
  const style = `${color && `color:${color};`}${back && `background:${back};`}`;
  if (!style && classes.length === 0) return document.createTextNode(text);
  return h('span', { class: classes.join(' ') || undefined, style: style || undefined }, text);
}

function read(codes: number[], before: TextStyle): TextStyle {
  let style = before;
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] ?? 0;
    if (code === 38 || code === 48) {
      const taken = codes[i + 1] === 5 ? 2 : 4;
      const color = extended(codes.slice(i + 1, i + 1 + taken));
      style = code === 38 ? { ...style, color } : { ...style, back: color };
      i += taken;
    } else {
      style = marked(code, style);
    }
  }
  return style;
}

function marked(code: number, style: TextStyle): TextStyle {
  const mark = MARKS[code];
  if (code === 0) return { classes: [], color: '', back: '' };
  if (mark) return { ...style, classes: [...style.classes, mark] };
  if (code >= 40 && code !== 49 && code < 108 && (code < 48 || code >= 100)) {
    return { ...style, back: named(code >= 100 ? code - 92 : code - 40) };
  }
  return { ...style, color: named(code >= 90 ? code - 82 : code - 30) };
}

function extended([kind, ...values]: number[]): string {
  if (kind === 2) return `rgb(${values.join(' ')})`;
  const index = values[0] ?? 0;
  if (index < 16) return named(index);
  if (index >= 232)
    return `rgb(${Array(3)
      .fill(8 + 10 * (index - 232))
      .join(' ')})`;
  const level = (part: number): number => (part === 0 ? 0 : 55 + 40 * part);
  const cube = index - 16;
  return `rgb(${[Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map(level).join(' ')})`;
}

/** The sixteen named colours are the theme's. */
function named(index: number): string {
  return `var(--at-ansi-${index % 8})`;
}

/** Where the header of a cell lies, and what its words are. Pure; the server decides what is right in it. */

export const MAGIC = '%%autotrain';

export type Kind =
  | 'magic'
  | 'flag'
  | 'key'
  | 'string'
  | 'number'
  | 'atom'
  | 'call'
  | 'comment'
  | 'rule'
  | 'text';

/** A part of the text, by offsets. */
export interface Token {
  from: number;
  to: number;
  kind: Kind;
}

const RULE = /^---\s*$/;
const MAGIC_LINE = /^%%autotrain(?=\s|$)/;
const HEADER_LINE = /^\s*(#.*|-\s.*|[\p{L}_]\w*\s*:(\s.*)?|[}\]].*)?$/u;
const WORDS =
  /(?<comment>(?<=^|\s)#.*)|(?<string>"(?:\\.|[^"\\])*"?|(?<![\w.])'(?:''|[^'])*'?)|(?<key>[\p{L}_][\w.-]*)(?=\s*:(?:\s|$))|(?<call>[A-Za-z_]\w*)(?=\()|(?<number>(?<![\w.])[-+]?\.?\d[\w.]*(?:(?<=[eE])[-+]\d+)?)|(?<atom>(?<![\w.])(?:true|false|null|maximize|minimize)(?![\w.]))|(?<text>[\p{L}_][\w./-]*)/gu;
const FLAGS = /(?<comment>(?<=^|\s)#.*)|(?<flag>(?<=\s)--?[A-Za-z][\w-]*)|(?<text>\S+)/g;

/** Whether a cell is an experiment. */
export function isExperiment(text: string): boolean {
  return MAGIC_LINE.test(text);
}

/** The tokens of the magic line and the header, in order; none where the cell is no experiment. */
export function headerTokens(text: string): Token[] {
  if (!isExperiment(text)) return [];
  const rows = text.split('\n');
  const kinds = new Set(headerRows(rows));
  const tokens: Token[] = [];
  let offset = 0;
  rows.forEach((row, number) => {
    if (number === 0) tokens.push(...magicLine(row));
    else if (kinds.has(number)) tokens.push(...headerLine(row, offset));
    offset += row.length + 1;
  });
  return tokens;
}

/** Whether the header of a cell ends, with its line end, within so many characters. */
export function headerEndsWithin(text: string, characters: number): boolean {
  if (text.length <= characters) return true;
  const rows = text.split('\n');
  const last = headerRows(rows).at(-1) ?? 0;
  return rows.slice(0, last + 1).join('\n').length < characters;
}

/** Whether the row with this number (from 0) is empty, and only a header is above it. */
export function isEmptyInHeader(rows: string[], at: number): boolean {
  if (at < 1 || rows[at]?.trim() !== '') return false;
  return rows.slice(1, at).every((row, i) => HEADER_LINE.test(row) || (i === 0 && RULE.test(row)));
}

/** The numbers (from 0) of the rows of the header, with the rules around it. */
export function headerRows(rows: string[]): number[] {
  const first = rows.findIndex((row, number) => number > 0 && row.trim() !== '');
  if (first < 0) return [];
  if (rows[first]?.startsWith('#|')) {
    const end = rows.findIndex((row, number) => number > first && !row.startsWith('#|'));
    return range(first, end < 0 ? rows.length : end);
  }
  const isRuled = RULE.test(rows[first] ?? '');
  const begin = isRuled ? first + 1 : 1;
  const end = rows.findIndex((row, number) => number >= begin && RULE.test(row));
  if (end < 0) return isRuled ? [first] : [];
  return range(isRuled ? first : 1, end + 1);
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

function magicLine(row: string): Token[] {
  const end = MAGIC.length;
  return [{ from: 0, to: end, kind: 'magic' }, ...found(FLAGS, row.slice(end), end)];
}

function headerLine(row: string, offset: number): Token[] {
  const commented = /^#\| ?/.exec(row)?.[0].length ?? 0;
  const mark: Token[] = commented > 0 ? [{ from: offset, to: offset + 2, kind: 'comment' }] : [];
  const rest = row.slice(commented);
  const begin = offset + commented;
  if (RULE.test(rest)) return [...mark, { from: begin, to: begin + 3, kind: 'rule' }];
  return [...mark, ...found(WORDS, rest, begin)];
}

function found(pattern: RegExp, row: string, offset: number): Token[] {
  return [...row.matchAll(pattern)].flatMap((match) => {
    const kind = Object.entries(match.groups ?? {}).find(([, text]) => text)?.[0];
    const from = offset + match.index;
    return kind ? [{ from, to: from + match[0].length, kind: kind as Kind }] : [];
  });
}

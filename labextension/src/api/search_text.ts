/** How the values that a parameter may take read: as a header says them. */

import type { Json } from '../../widgets/lib/frames';

/** The numbers of each kind, in the order of a call. */
const NUMBERS: Record<string, readonly string[]> = {
  randint: ['low', 'high'],
  uniform: ['low', 'high', 'q'],
  normal: ['mu', 'sigma', 'q'],
};
/** What YAML would read as something else than this text. */
const AMBIGUOUS = /^$|^[\d.+-]|[\s,:#&*!|>'"%@`()[\]{}]|^(true|false|null|yes|no|on|off)$/i;

/** A distribution in one line: `loguniform(1e-6, 0.1)`, `choice(adam, sgd)` */
export function searchText(space: Json | undefined): string {
  const found = objectOf(space);
  if (!found) return valueText(space ?? null);
  if (Array.isArray(found.options)) return `choice(${found.options.map(optionText).join(', ')})`;
  const kind = typeof found.kind === 'string' ? found.kind : '';
  const names = NUMBERS[kind];
  if (!names) return JSON.stringify(space);
  const numbers = names.map((name) => found[name]).filter((value) => typeof value === 'number');
  const prefix = `${typeof found.q === 'number' ? 'q' : ''}${found.log === true ? 'log' : ''}`;
  return `${prefix}${kind}(${numbers.map(numberText).join(', ')})`;
}

/** The options of the parameters that are one of several numbers; of nested spaces by path, as `model.width`. */
export function numericOptions(search: Record<string, Json>, prefix = ''): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const [name, space] of Object.entries(search)) {
    const options = objectOf(space)?.options;
    if (!Array.isArray(options)) continue;
    const numbers = options.filter((option) => typeof option === 'number');
    if (numbers.length === options.length) found.set(`${prefix}${name}`, numbers);
    for (const option of options) {
      const inner = spaceOf(option);
      for (const [path, values] of numericOptions(inner ?? {}, `${prefix}${name}.`)) found.set(path, values);
    }
  }
  return found;
}

function objectOf(value: Json | undefined): Record<string, Json> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
}

/** The space that an option brings; undefined for a plain value. */
function spaceOf(option: Json): Record<string, Json> | undefined {
  const found = objectOf(option);
  return found?.kind === 'nested' ? objectOf(found.space) : undefined;
}

/** An option may have a space of its own: `{_name: mlp, width: choice(32, 64)}` */
function optionText(option: Json): string {
  const found = objectOf(option);
  if (!found) return valueText(option);
  const space = spaceOf(option);
  if (!space) return JSON.stringify(option);
  const inner = Object.entries(space).map(([key, value]) => `${key}: ${searchText(value)}`);
  return `{${[`_name: ${valueText(found.name ?? null)}`, ...inner].join(', ')}}`;
}

function valueText(value: Json): string {
  if (typeof value === 'number') return numberText(value);
  return typeof value === 'string' && !AMBIGUOUS.test(value) ? value : JSON.stringify(value);
}

/** All digits, as people write small and large numbers. */
function numberText(value: number): string {
  const size = Math.abs(value);
  const isUsual = value === 0 || (size >= 1e-3 && size < 1e6);
  return isUsual ? String(value) : value.toExponential().replace('e+', 'e');
}

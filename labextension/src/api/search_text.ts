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
  if (typeof space !== 'object' || space === null || Array.isArray(space)) return valueText(space ?? null);
  if (Array.isArray(space.options)) return `choice(${space.options.map(optionText).join(', ')})`;
  const { kind } = space;
  const names = typeof kind === 'string' ? NUMBERS[kind] : undefined;
  if (typeof kind !== 'string' || !names) return JSON.stringify(space);
  const numbers = names.map((name) => space[name]).filter((value) => typeof value === 'number');
  const prefix = `${typeof space.q === 'number' ? 'q' : ''}${space.log === true ? 'log' : ''}`;
  return `${prefix}${kind}(${numbers.map(numberText).join(', ')})`;
}

/** The options of the parameters that are one of several numbers; of nested spaces by path, as `model.width`. */
export function numericOptions(search: Record<string, Json>, prefix = ''): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const [name, space] of Object.entries(search)) {
    if (typeof space !== 'object' || space === null || Array.isArray(space)) continue;
    const { options } = space;
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

/** The space that an option brings; undefined for a plain value. */
function spaceOf(option: Json): Record<string, Json> | undefined {
  if (typeof option !== 'object' || option === null || Array.isArray(option)) return undefined;
  const { kind, space } = option;
  const isNested = kind === 'nested' && typeof space === 'object' && space !== null && !Array.isArray(space);
  return isNested ? space : undefined;
}

/** An option may have a space of its own: `{_name: mlp, width: choice(32, 64)}` */
function optionText(option: Json): string {
  if (typeof option !== 'object' || option === null || Array.isArray(option)) return valueText(option);
  const space = spaceOf(option);
  if (!space) return JSON.stringify(option);
  const inner = Object.entries(space).map(([key, value]) => `${key}: ${searchText(value)}`);
  return `{${[`_name: ${valueText(option.name ?? null)}`, ...inner].join(', ')}}`;
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

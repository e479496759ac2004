/** Amounts of an inventory as text; what is not known is a dash, never zero. */

import type { Translator } from '../../widgets/lib/translator';
import type { Accelerator } from '../api/places';

const UNKNOWN = '–';
const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

export const plain = {
  count: (amount: number | null): string => (amount === null ? UNKNOWN : String(amount)),

  bytes(amount: number | null): string {
    if (amount === null) return UNKNOWN;
    const power = Math.min(Math.floor(Math.log10(Math.max(amount, 1)) / 3), UNITS.length - 1);
    const scaled = amount / 1000 ** power;
    return `${Number(scaled.toPrecision(3))} ${UNITS[power] ?? ''}`;
  },

  /** Kinds with how many there are of each, as `4 × NVIDIA H100 (80 GB)`; how many other programs use. */
  gpus(accelerators: Accelerator[], trans: Translator): string {
    const kinds = new Map<string, number>();
    for (const each of accelerators) {
      const memory = each.memory_bytes === null ? '' : ` (${plain.bytes(each.memory_bytes)})`;
      const kind = `${each.kind ?? trans.__('GPU')}${memory}`;
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
    const busy = accelerators.filter((each) => each.busy).length;
    const texts = [...kinds].map(([kind, many]) => `${many} × ${kind}`);
    if (busy) texts.push(trans.__('%1 busy', busy));
    return texts.join(', ') || '0';
  },
};

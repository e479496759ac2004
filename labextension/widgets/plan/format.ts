/** How seconds, bytes, amounts and shares read: numbers with units, which are the same in every language. */

export function seconds(value: number): string {
  const [size, unit] = value >= 1 ? [value, 's'] : value >= 1e-3 ? [value * 1e3, 'ms'] : [value * 1e6, 'µs'];
  if (value < 1e-9) return '0 ms';
  return `${size >= 100 ? size.toFixed(0) : String(Number(size.toPrecision(3)))} ${unit}`;
}

export function bytes(value: number): string {
  return scaled(value, ['B', 'kB', 'MB', 'GB', 'TB', 'PB']);
}

export function amount(value: number): string {
  return scaled(value, ['', 'k', 'M', 'B', 'T', 'P']).trim();
}

/** Work of an op: `106 TFLOP`; empty for one that computes nothing. */
export function flopsText(value: number): string {
  return value > 0 ? scaled(value, ['FLOP', 'kFLOP', 'MFLOP', 'GFLOP', 'TFLOP', 'PFLOP']) : '';
}

function scaled(value: number, units: string[], base = 1000): string {
  let [size, at] = [value, 0];
  while (size >= base - 0.5 && at < units.length - 1) [size, at] = [size / base, at + 1];
  return `${size >= 100 ? size.toFixed(0) : String(Number(size.toPrecision(3)))} ${units[at] ?? ''}`;
}

export function percent(share: number): string {
  const value = share * 100;
  return value > 0 && value < 0.1
    ? '< 0.1 %'
    : `${value < 10 ? Number(value.toFixed(1)) : value.toFixed(0)} %`;
}

/** Memory of a device, and what is sent, in binary units: 80 GiB. Bandwidths go in decimal ones, as links are sold. */
export function memoryText(value: number): string {
  return scaled(value, ['B', 'KiB', 'MiB', 'GiB', 'TiB'], 1024);
}

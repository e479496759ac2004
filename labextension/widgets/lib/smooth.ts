/** Smoothing of a noisy curve. */

/**
 * The exponential moving average with weight `0 <= weight < 1` of the past, freed of the pull towards zero at the
 * start; values that are no numbers stay as they are and change nothing after them. O(values).
 */
export function smooth(values: Float64Array, weight: number): Float64Array {
  const smoothed = new Float64Array(values.length);
  let [mean, share] = [0, 0];
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? NaN;
    if (!Number.isFinite(value)) {
      smoothed[i] = value;
      continue;
    }
    mean = weight * mean + (1 - weight) * value;
    share = weight * share + (1 - weight);
    smoothed[i] = mean / share;
  }
  return smoothed;
}

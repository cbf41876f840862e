/** The value below which the share `p` of the samples lies. */
export function percentile(samples, p) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))];
}

export const median = (samples) => percentile(samples, 0.5);

export async function timed(action) {
  const started = performance.now();
  await action();
  return performance.now() - started;
}

/** Both sides alternate, so that a slow moment of the machine meets both. */
export async function alternate(rounds, ours, theirs) {
  const samples = { ours: [], theirs: [] };
  for (let round = 0; round < rounds; round++) {
    samples.ours.push(await timed(ours));
    samples.theirs.push(await timed(theirs));
  }
  return samples;
}

export const round = (value, digits = 3) => Number(value.toFixed(digits));

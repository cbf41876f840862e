import { setTimeout as delay } from "node:timers/promises";

/** The value below which the share `p` of the samples lies. */
export function percentile(samples, p) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))];
}

/** The least disturbed sample: what a ratio would be on a quiet machine. */
export const best = (samples) => Math.min(...samples);

export const median = (samples) => percentile(samples, 0.5);

export async function timed(action) {
  const started = performance.now();
  await action();
  return performance.now() - started;
}

const BLOCK = 10;

/** Both sides alternate, so that a slow moment of the machine meets both; in blocks, so that each finds its caches warm. */
export async function alternate(rounds, ours, theirs) {
  const samples = { ours: [], theirs: [] };
  for (let round = 0; round < rounds; round += BLOCK) {
    for (let index = 0; index < BLOCK; index++) samples.ours.push(await timed(ours));
    for (let index = 0; index < BLOCK; index++) samples.theirs.push(await timed(theirs));
  }
  return samples;
}

const TURNS = 6;
const OURS_IN_A_TURN = 100;
const THEIRS_IN_A_TURN = 5;
const TIDY_MS = 500;

/** Against the engine, which goes on for long after its answer: it is given the time, so that neither side is measured with that. */
export async function inTurns(ours, theirs) {
  const samples = { ours: [], theirs: [] };
  for (let turn = 0; turn < TURNS; turn++) {
    for (let index = 0; index < OURS_IN_A_TURN; index++) samples.ours.push(await timed(ours));
    for (let index = 0; index < THEIRS_IN_A_TURN; index++) samples.theirs.push(await timed(theirs));
    await delay(TIDY_MS);
  }
  return samples;
}

export const round = (value, digits = 3) => Number(value.toFixed(digits));

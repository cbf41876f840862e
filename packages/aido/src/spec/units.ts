const DURATION = /^([0-9]+)(s|m|h)$/;
const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000 } as const;
export const MAX_DURATION_MS = 30 * 24 * UNIT_MS.h;

/** `30s`, `20m`, `1h` in milliseconds; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const match = DURATION.exec(text);
  if (match === null) return undefined;
  return Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS];
}

const SIZE = /^([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(i?b?)$/i;
const POWERS = ["", "k", "m", "g", "t"];

/** `512m`, `1g`, `256MiB` or plain bytes, always in powers of 1024, as container engines count. */
export function parseSize(text: string): number | undefined {
  const match = SIZE.exec(text.trim());
  if (match === null) return undefined;
  const power = POWERS.indexOf((match[2] ?? "").toLowerCase());
  if (power === 0 && /i/i.test(match[3] ?? "")) return undefined;
  return Math.round(Number(match[1]) * 1024 ** power);
}

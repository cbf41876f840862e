const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 || Number.isInteger(value) ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

/** The largest two units that say something: `2m 5s`, `3h 10m`, `340ms`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 10) return `${(ms / 1000).toFixed(1).replace(/\.0$/, "")}s`;
  const parts: [number, string][] = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count}${unit}`)
    .join(" ");
}

export function formatAge(since: Date, now: Date): string {
  return `${formatDuration(Math.floor((now.getTime() - since.getTime()) / 1000) * 1000).replace(/^0ms$/, "0s")} ago`;
}

export function formatUntil(end: Date | undefined, now: Date): string {
  if (end === undefined) return "never";
  const left = end.getTime() - now.getTime();
  return left <= 0 ? "now" : formatDuration(Math.ceil(left / 1000) * 1000);
}

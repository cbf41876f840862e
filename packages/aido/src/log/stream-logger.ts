import type { Logger } from "../core/logger.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
type Level = (typeof LOG_LEVELS)[number];

export interface LoggerOptions {
  readonly level: Level | "silent";
  readonly format: "json" | "text";
  write(line: string): void;
  now(): Date;
}

const SECRET = /token|secret|password|passwd|authorization|cookie|api[_-]?key|credential|private[_-]?key/i;
const HIDDEN = "[hidden]";
const MAX_DEPTH = 4;

/** One line per entry. Fields whose name speaks of a secret are hidden, environments with all they hold. */
export class StreamLogger implements Logger {
  readonly #options: LoggerOptions;
  readonly #fields: object;

  constructor(options: LoggerOptions, fields: object = {}) {
    this.#options = options;
    this.#fields = fields;
  }

  debug(fields: object, message: string): void {
    this.#log("debug", fields, message);
  }

  info(fields: object, message: string): void {
    this.#log("info", fields, message);
  }

  warn(fields: object, message: string): void {
    this.#log("warn", fields, message);
  }

  error(fields: object, message: string): void {
    this.#log("error", fields, message);
  }

  child(fields: object): Logger {
    return new StreamLogger(this.#options, { ...this.#fields, ...fields });
  }

  #log(level: Level, fields: object, message: string): void {
    const { level: least, format, write, now } = this.#options;
    if (least === "silent" || LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(least)) return;
    const safe = redact({ ...this.#fields, ...fields }, 0) as Record<string, unknown>;
    const time = now().toISOString();
    if (format === "json") write(`${JSON.stringify({ time, level, message, ...safe })}\n`);
    else write(`${time.slice(11, 23)} ${level.padEnd(5)} ${printable(message)}${asText(safe)}\n`);
  }
}

function redact(value: unknown, depth: number): unknown {
  if (value instanceof Error) return { name: value.name, message: value.message };
  if (value instanceof Date) return value.toISOString();
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_DEPTH) return "…";
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  const entries = Object.entries(value).map(([key, item]) => {
    const isSecret = item !== undefined && (SECRET.test(key) || key === "env");
    return [key, isSecret ? HIDDEN : redact(item, depth + 1)];
  });
  return Object.fromEntries(entries);
}

function asText(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}=${typeof value === "string" ? quoted(value) : JSON.stringify(value)}`)
    .join("");
}

function quoted(value: string): string {
  return /^[\w./:@-]+$/.test(value) ? value : JSON.stringify(value);
}

/** A log may quote what came from a sandbox; it must not drive the terminal. */
function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, " ");
}

import { Secret } from "./secret.ts";

/** How a value is written by people: as text in a variable or a flag, as JSON in a file. */
export interface ValueKind<T> {
  /** For the reference page and for messages: "a duration such as 30s". */
  readonly what: string;
  /** In a file it is written as an object of its own, not as settings beneath this one. */
  readonly isObject?: boolean;
  /** Undefined when the value is not of this kind. */
  read(value: unknown): T | undefined;
}

const DURATION_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const SIZE_BYTES: Readonly<Record<string, number>> = {
  "": 1,
  k: 1024,
  m: 1024 ** 2,
  g: 1024 ** 3,
  t: 1024 ** 4,
};

export const text: ValueKind<string> = {
  what: "text",
  read: (value) => (typeof value === "string" && value !== "" ? value : undefined),
};

export const secret: ValueKind<Secret> = {
  what: "text, never printed",
  read: (value) => (typeof value === "string" && value !== "" ? new Secret(value) : undefined),
};

export const flag: ValueKind<boolean> = {
  what: "true or false",
  read(value) {
    if (typeof value === "boolean") return value;
    if (value === "true" || value === "1") return true;
    return value === "false" || value === "0" ? false : undefined;
  },
};

export const url: ValueKind<string> = {
  what: "an address such as http://127.0.0.1:3000",
  read(value) {
    if (typeof value !== "string" || !URL.canParse(value)) return undefined;
    return ["http:", "https:"].includes(new URL(value).protocol) ? value : undefined;
  },
};

export function oneOf<const T extends string>(...allowed: readonly T[]): ValueKind<T> {
  return {
    what: `one of ${allowed.join(", ")}`,
    read: (value) => allowed.find((candidate) => candidate === value),
  };
}

export function numberFrom(minimum: number, options: { whole: boolean }): ValueKind<number> {
  return {
    what: `${options.whole ? "a whole number" : "a number"} of at least ${minimum}`,
    read(value) {
      if (typeof value !== "number" && !(typeof value === "string" && /^\d+(\.\d+)?$/.test(value))) {
        return undefined;
      }
      const number = Number(value);
      const isFit = options.whole ? Number.isSafeInteger(number) : Number.isFinite(number);
      return isFit && number >= minimum ? number : undefined;
    },
  };
}

const MAX_UINT64 = 2n ** 64n - 1n;

/** As text: such a number may be larger than a number can be here. */
export const uint64: ValueKind<string> = {
  what: `a whole number of at most ${MAX_UINT64}`,
  read(value) {
    if (typeof value === "number") return Number.isSafeInteger(value) && value >= 0 ? `${value}` : undefined;
    if (typeof value !== "string" || !/^\d{1,20}$/.test(value)) return undefined;
    const number = BigInt(value);
    return number <= MAX_UINT64 ? `${number}` : undefined;
  },
};

/** In milliseconds. */
export const duration: ValueKind<number> = {
  what: "a duration such as 500ms, 30s, 5m, 1h or 2d; 0 means none",
  read(value) {
    if (value === 0 || value === "0") return 0;
    const match = typeof value === "string" ? /^(\d{1,12}(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value) : null;
    if (match === null) return undefined;
    return Math.round(Number(match[1]) * (DURATION_MS[match[2] ?? ""] ?? Number.NaN));
  },
};

/** A plain number of seconds, in milliseconds: how some variables have always been written. */
export const seconds: ValueKind<number> = {
  what: "a number of seconds",
  read(value) {
    const number = typeof value === "string" && /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
    return Number.isFinite(number) ? number * 1000 : undefined;
  },
};

/** A plain number of milliseconds, for variables that have always been written so. */
export const milliseconds: ValueKind<number> = {
  what: "a number of milliseconds",
  read: (value) => (typeof value === "string" && /^\d{1,12}$/.test(value) ? Number(value) : undefined),
};

export const bytes: ValueKind<number> = {
  what: "a size such as 64k, 512m or 4g, or a number of bytes",
  read(value) {
    if (typeof value === "number") return Number.isSafeInteger(value) && value >= 0 ? value : undefined;
    const match = typeof value === "string" ? /^(\d{1,15}(?:\.\d+)?)([kmgt]?)(?:i?b)?$/i.exec(value) : null;
    if (match === null) return undefined;
    const size = Math.round(Number(match[1]) * (SIZE_BYTES[(match[2] ?? "").toLowerCase()] ?? Number.NaN));
    return Number.isSafeInteger(size) ? size : undefined;
  },
};

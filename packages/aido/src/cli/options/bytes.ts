import { AidoError } from "@aido/sdk/protocol";

const POWERS = { "": 0, k: 1, m: 2, g: 3, t: 4 } as const;
const PATTERN = /^(\d+(?:\.\d+)?)\s*(?:([kmgt])(?:i?b)?|b)?$/i;

/** `512m`, `1g`, `1.5GiB`, plain bytes. Units are powers of 1024. */
export function parseBytes(text: string, option: string): number {
  const match = PATTERN.exec(text);
  const power = POWERS[(match?.[2] ?? "").toLowerCase() as keyof typeof POWERS];
  const bytes = match ? Math.round(Number(match[1]) * 1024 ** power) : 0;
  if (bytes < 1 || !Number.isSafeInteger(bytes)) {
    throw new AidoError("VALIDATION_ERROR", `${option} cannot be "${text}"`, {
      hint: "Write a size such as 512m, 1g or 1.5GiB.",
      details: { option, value: text },
    });
  }
  return bytes;
}

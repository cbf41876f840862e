import { z } from "zod";

const MAX_JSON = 1_000_000;
const MAX_LIST = 1000;

export const text = z.string();

/** A whole number; as text too, because not every sender's JSON has numbers of 64 bits. */
export const uint = z
  .union([
    z.number().int().nonnegative(),
    z
      .string()
      .regex(/^\d{1,20}$/)
      .transform(Number),
  ])
  .refine(Number.isSafeInteger, "is larger than this machine counts")
  .default(0);

export const truth = z
  .union([z.boolean(), z.enum(["true", "false", ""]).transform((word) => word === "true")])
  .default(false);

/** One text is a list of one. */
export const textList = z
  .union([
    z.array(z.string().max(2048)).max(MAX_LIST),
    z
      .string()
      .max(2048)
      .transform((one) => [one]),
  ])
  .default([]);

/** An object, or the text of one; empty text is an empty object. */
export const jsonObject = z
  .union([z.string().max(MAX_JSON), z.record(z.string(), z.unknown())])
  .transform((value, context): Record<string, unknown> => {
    if (typeof value !== "string") return value;
    if (value.trim() === "") return {};
    const parsed = parse(value);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) {
      return parsed as Record<string, unknown>;
    }
    context.addIssue({ code: "custom", message: 'must be a JSON object, such as {"NAME":"value"}' });
    return z.NEVER;
  })
  .default({});

function parse(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}

/** An object whose fields may be written in camelCase or snake_case, each once; others are refused. */
export function named<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.preprocess((value, context) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    const result: Record<string, unknown> = {};
    const written = new Map<string, string>();
    for (const [name, field] of Object.entries(value)) {
      const camel = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
      const before = written.get(camel);
      if (before !== undefined) {
        const message = `is given twice, as ${before} and as ${name}`;
        context.issues.push({ code: "custom", input: value, path: [camel], message });
      }
      written.set(camel, name);
      Object.defineProperty(result, camel, {
        value: field,
        enumerable: true,
        configurable: true,
        writable: true,
      });
    }
    return result;
  }, z.strictObject(shape));
}

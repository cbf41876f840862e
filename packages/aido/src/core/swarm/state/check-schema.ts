/** The part of JSON Schema draft-07 that aido's schemas use. A word that is missing here cannot be written in one. */
export interface JsonSchema {
  readonly $schema?: string;
  readonly $id?: string;
  readonly title?: string;
  readonly description?: string;
  readonly type: JsonType | readonly JsonType[];
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly format?: "date-time" | "uri";
  readonly minimum?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: false;
}

type JsonType = "object" | "array" | "string" | "integer" | "null";

export interface SchemaProblem {
  /** Where, as in `containers[2].status`; empty for the value itself. */
  field: string;
  /** What is wrong, as the rest of a sentence that begins with the field. */
  message: string;
  /** The field is one that the schema does not know. */
  isUnknown?: true;
}

const MOST_PROBLEMS = 10;

/** What of a value does not fit, in the order of the document; not more than a reader wants to see. */
export function checkSchema(value: unknown, schema: JsonSchema): readonly SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  visit(value, schema, "", problems);
  return problems.slice(0, MOST_PROBLEMS);
}

function visit(value: unknown, schema: JsonSchema, field: string, problems: SchemaProblem[]): void {
  if (problems.length >= MOST_PROBLEMS) return;
  const types = [schema.type].flat();
  const type = typeOf(value);
  if (type === undefined || !types.includes(type)) {
    problems.push({ field, message: `is not ${types.map((each) => NAMES[each]).join(" or ")}` });
    return;
  }
  const message = wrongValue(value, schema);
  if (message !== undefined) problems.push({ field, message });
  if (type === "array" && schema.items !== undefined) {
    for (const [index, item] of (value as unknown[]).entries()) {
      visit(item, schema.items, `${field}[${index}]`, problems);
    }
  }
  if (type === "object") visitObject(value as Record<string, unknown>, schema, field, problems);
}

function visitObject(
  value: Record<string, unknown>,
  schema: JsonSchema,
  field: string,
  problems: SchemaProblem[],
): void {
  const properties = schema.properties ?? {};
  const within = (name: string) => (field === "" ? name : `${field}.${name}`);
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(value, name)) problems.push({ field: within(name), message: "is missing" });
  }
  for (const [name, item] of Object.entries(value)) {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (known !== undefined) visit(item, known, within(name), problems);
    else if (schema.additionalProperties === false)
      problems.push({ field: within(name), message: "is not a known field", isUnknown: true });
  }
}

function wrongValue(value: unknown, schema: JsonSchema): string | undefined {
  if (typeof value === "number") {
    return schema.minimum !== undefined && value < schema.minimum
      ? `is less than ${schema.minimum}`
      : undefined;
  }
  if (typeof value !== "string") return undefined;
  if (schema.enum !== undefined && !schema.enum.includes(value))
    return `is not one of ${schema.enum.join(", ")}`;
  // As JSON Schema has it: a pattern is one of Unicode characters, and is anchored only where it says so.
  if (schema.pattern !== undefined && !new RegExp(schema.pattern, "u").test(value))
    return `does not match ${schema.pattern}`;
  if (schema.format === "date-time" && !isDateTime(value))
    return "is not a time such as 2026-01-31T12:00:00Z";
  if (schema.format === "uri" && !isUri(value)) return "is not an absolute address";
  return undefined;
}

const DATE_TIME =
  /^(\d{4}-(?:0[1-9]|1[0-2])-(\d{2}))T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

function isDateTime(text: string): boolean {
  const [, date, day] = DATE_TIME.exec(text) ?? [];
  if (date === undefined) return false;
  // The 31st of June becomes the 1st of July instead of being refused.
  const parsed = new Date(`${date}T00:00:00Z`);
  return !Number.isNaN(parsed.getTime()) && parsed.getUTCDate() === Number(day);
}

function isUri(text: string): boolean {
  // What a URI may consist of: the parser of addresses would silently repair the rest.
  return /^[a-zA-Z][a-zA-Z0-9+.-]*:[!#$%&'()*+,\-./0-9:;=?@A-Z[\]_a-z~]+$/.test(text) && URL.canParse(text);
}

function typeOf(value: unknown): JsonType | undefined {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "string") return "string";
  if (typeof value === "object") return "object";
  return Number.isSafeInteger(value) ? "integer" : undefined;
}

const NAMES: Readonly<Record<JsonType, string>> = {
  object: "an object",
  array: "a list",
  string: "a string",
  integer: "a whole number",
  null: "null",
};

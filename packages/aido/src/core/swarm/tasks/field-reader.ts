import { type JsonNode, lineAt } from "./json-source.ts";
import type { TaskFileProblem } from "./task-file-error.ts";

/** Beyond these nobody reads on, and a hostile file could make very many. */
const MAX_PROBLEMS = 200;

/** Reads fields of a file by their rules and collects what is wrong, so that all of it is said at once. */
export class FieldReader {
  readonly problems: TaskFileProblem[] = [];
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  problem(node: JsonNode, field: string, problem: string, fix: string): void {
    if (this.problems.length >= MAX_PROBLEMS) return;
    this.problems.push({ field, line: lineAt(this.#text, node.start), problem, fix });
  }

  /** A problem of a member, on its own line when it is there and its object's when not. */
  wrong(node: JsonNode | undefined, parent: string, name: string, problem: string, fix: string): void {
    if (node === undefined) return;
    this.problem(this.member(node, name) ?? node, join(parent, name), problem, fix);
  }

  member(node: JsonNode | undefined, name: string): JsonNode | undefined {
    return node?.value instanceof Map ? (node.value as ReadonlyMap<string, JsonNode>).get(name) : undefined;
  }

  asObject(node: JsonNode, field: string): JsonNode | undefined {
    if (node.value instanceof Map) return node;
    this.problem(node, field, "is not an object", "Write it as { … }.");
    return undefined;
  }

  object(node: JsonNode, parent: string, name: string): JsonNode | undefined {
    const found = this.#required(node, parent, name, "an object { … }");
    return found === undefined ? undefined : this.asObject(found, join(parent, name));
  }

  list(node: JsonNode | undefined, parent: string, name: string): readonly JsonNode[] | undefined {
    const found = this.#required(node, parent, name, "a list [ … ]");
    if (found === undefined) return undefined;
    if (Array.isArray(found.value)) return found.value as readonly JsonNode[];
    this.problem(found, join(parent, name), "is not a list", "Write it as [ … ].");
    return undefined;
  }

  strings(node: JsonNode | undefined, parent: string, name: string, max: number): string[] | undefined {
    return this.list(node, parent, name)?.map(
      (item, index) => this.#textOf(item, `${join(parent, name)}[${index}]`, { max }) ?? "",
    );
  }

  string(
    node: JsonNode | undefined,
    parent: string,
    name: string,
    rule: { max: number; optional?: boolean; empty?: boolean },
  ): string | undefined {
    const found = rule.optional ? this.#optional(node, name) : this.#required(node, parent, name, "a text");
    return found === undefined ? undefined : this.#textOf(found, join(parent, name), rule);
  }

  number(
    node: JsonNode | undefined,
    parent: string,
    name: string,
    { optional = false } = {},
  ): number | undefined {
    const found = optional ? this.#optional(node, name) : this.#required(node, parent, name, "a number");
    if (found === undefined) return undefined;
    if (typeof found.value === "number" && Number.isFinite(found.value)) return found.value;
    this.problem(found, join(parent, name), "is not a number", "Write a number without quotes.");
    return undefined;
  }

  /** The first of the values when it is none of them: the problem is noted, so nobody sees it. */
  oneOf<Value extends string>(
    node: JsonNode | undefined,
    parent: string,
    name: string,
    values: readonly [Value, ...Value[]],
  ): Value {
    const found = this.#required(node, parent, name, values.join(", "));
    const value = values.find((value) => value === found?.value);
    if (found !== undefined && value === undefined) {
      this.problem(found, join(parent, name), "is not one of its values", `Use ${values.join(", ")}.`);
    }
    return value ?? values[0];
  }

  #textOf(node: JsonNode, field: string, { max, empty = false }: { max: number; empty?: boolean }) {
    const { value } = node;
    if (typeof value !== "string") {
      this.problem(node, field, "is not a text", "Write it in quotes.");
      return undefined;
    }
    const length = [...value].length;
    if (length > max) {
      this.problem(node, field, `has ${length} characters`, `Shorten it to at most ${max}.`);
      return undefined;
    }
    if (!empty && value.trim() === "") {
      this.problem(node, field, "is empty", "Write something.");
      return undefined;
    }
    return value;
  }

  #optional(node: JsonNode | undefined, name: string): JsonNode | undefined {
    const found = this.member(node, name);
    return found?.value === null ? undefined : found;
  }

  #required(node: JsonNode | undefined, parent: string, name: string, what: string): JsonNode | undefined {
    if (node === undefined) return undefined;
    const found = this.member(node, name);
    if (found === undefined) this.problem(node, join(parent, name), "is missing", `Add it: ${what}.`);
    return found;
  }
}

function join(parent: string, name: string): string {
  return parent === "" ? name : `${parent}.${name}`;
}

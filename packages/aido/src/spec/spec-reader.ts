import type { Document, LineCounter, Node, Pair, YAMLMap } from "yaml";
import { nearestName } from "./nearest-name.ts";
import type { SpecProblem } from "./spec-problem.ts";

/** A value of the file with its place. */
export interface SpecValue {
  node: Node;
  path: string;
}

type Yaml = typeof import("yaml");

/** Reads typed values out of a YAML document; what does not fit is noted with its place, never thrown. */
export class SpecReader {
  readonly problems: SpecProblem[] = [];
  readonly #yaml: Yaml;
  readonly #document: Document;
  readonly #lines: LineCounter;
  readonly #source: string;

  constructor(yaml: Yaml, document: Document, lines: LineCounter, source: string) {
    this.#yaml = yaml;
    this.#document = document;
    this.#lines = lines;
    this.#source = source;
  }

  problem(value: SpecValue, message: string, fix: string): void {
    const offset = value.node.range?.[0] ?? 0;
    this.problemAt(offset, this.#text(value.node), { path: value.path, message, fix });
  }

  problemAt(offset: number, text: string, about: Pick<SpecProblem, "path" | "message" | "fix">): void {
    const { line, col } = this.#lines.linePos(offset);
    this.problems.push({ line: Math.max(line, 1), column: Math.max(col, 1), text, ...about });
  }

  /** The known keys of a map. Unknown ones are noted with the nearest known name. */
  map(value: SpecValue, keys: readonly string[]): ReadonlyMap<string, SpecValue> | undefined {
    const entries = this.entries(value, `one of ${keys.join(", ")}`);
    if (entries === undefined) return undefined;
    const known = new Map<string, SpecValue>();
    for (const [key, entry] of entries) {
      if (keys.includes(key)) {
        known.set(key, entry.value);
        continue;
      }
      const nearest = nearestName(key, keys);
      const fix =
        nearest === undefined ? `The keys here are ${keys.join(", ")}.` : `Did you mean ${nearest}?`;
      this.problem({ node: entry.key, path: entry.value.path }, `unknown key ${JSON.stringify(key)}`, fix);
    }
    return known;
  }

  /** Every key of a map, as it stands. */
  entries(value: SpecValue, holds: string): Map<string, { key: Node; value: SpecValue }> | undefined {
    const node = this.#resolve(value.node);
    if (!this.#yaml.isMap(node)) {
      this.problem(value, `${value.path || "the file"} must be a map`, `Write keys and values: ${holds}.`);
      return undefined;
    }
    const found = new Map<string, { key: Node; value: SpecValue }>();
    for (const pair of (node as YAMLMap<Node, Node>).items as Pair<Node, Node | null>[]) {
      if (!this.#yaml.isScalar(pair.key)) {
        this.problem({ node: pair.key, path: value.path }, "a key must be plain text", "Write a name.");
        continue;
      }
      const name = String(pair.key.value);
      const path = value.path === "" ? name : `${value.path}.${name}`;
      // A key without a value has no node of its own; its key then marks the place.
      const entry = pair.value?.range == null ? pair.key : pair.value;
      found.set(name, { key: pair.key, value: { node: entry, path } });
      if (pair.value === null) this.#empty.add(entry);
    }
    return found;
  }

  readonly #empty = new Set<Node>();

  list(value: SpecValue, of: string): readonly SpecValue[] | undefined {
    const node = this.#resolve(value.node);
    if (this.#yaml.isSeq(node)) {
      return node.items.map((item, index) => ({ node: item as Node, path: `${value.path}[${index}]` }));
    }
    this.problem(value, `${value.path} must be a list`, `Write ${value.path}: [${of}].`);
    return undefined;
  }

  /** Text that was not written as a number, a boolean or nothing. */
  text(value: SpecValue, example: string): string | undefined {
    const scalar = this.scalar(value);
    if (typeof scalar?.value === "string" && scalar.value !== "") return scalar.value;
    this.problem(value, `${value.path} must be text`, `Write for example ${example}.`);
    return undefined;
  }

  /** Any scalar as it is written, so that `PORT: 8080` and `VERSION: 1.10` keep their spelling. */
  written(value: SpecValue, example: string): string | undefined {
    const scalar = this.scalar(value);
    if (typeof scalar?.value === "string") return scalar.value;
    if (scalar !== undefined && scalar.value !== null) return scalar.source ?? String(scalar.value);
    this.problem(value, `${value.path} has no value`, `Write for example ${example}.`);
    return undefined;
  }

  scalar(value: SpecValue): { value: unknown; source?: string | undefined } | undefined {
    const node = this.#resolve(value.node);
    if (this.#empty.has(value.node) || !this.#yaml.isScalar(node)) return undefined;
    return { value: node.value, source: node.source };
  }

  #resolve(node: Node): Node | undefined {
    return this.#yaml.isAlias(node) ? (node.resolve(this.#document) as Node | undefined) : node;
  }

  #text(node: Node): string {
    const [start, end] = node.range ?? [0, 0];
    const text = this.#source.slice(start, end).split("\n")[0]?.trim() ?? "";
    return text.length > 60 ? `${text.slice(0, 57)}...` : text;
  }
}

/** A JSON value that knows where it stands, so that errors name lines and changes touch nothing else. */
export interface JsonNode {
  readonly value: string | number | boolean | null | readonly JsonNode[] | ReadonlyMap<string, JsonNode>;
  /** Offsets in the text; `end` is the first character behind it. */
  readonly start: number;
  readonly end: number;
}

export class JsonSyntaxError extends Error {
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

/** Deeper than any task file; recursion stays far from the end of the stack. */
const MAX_DEPTH = 64;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON does not allow them in strings
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;
const SPACE = /[ \t\r\n]*/y;

/** As `JSON.parse`, but a name that occurs twice in an object is refused: readers would disagree on which counts. */
export function parseJsonSource(text: string): JsonNode {
  const source = new Source(text);
  const node = source.value(0);
  source.space();
  if (source.at < text.length) throw new JsonSyntaxError("has text behind its end", source.at);
  return node;
}

export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < offset; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}

class Source {
  readonly #text: string;
  at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  space(): void {
    this.#take(SPACE);
  }

  value(depth: number): JsonNode {
    if (depth > MAX_DEPTH) throw new JsonSyntaxError(`is nested more than ${MAX_DEPTH} deep`, this.at);
    this.space();
    const start = this.at;
    const first = this.#text[start];
    const value =
      first === "{" ? this.#members(depth) : first === "[" ? this.#items(depth) : this.#scalar(first);
    return { value, start, end: this.at };
  }

  #scalar(first: string | undefined): string | number | boolean | null {
    const found = this.#take(first === '"' ? STRING : /[-\d]/.test(first ?? "") ? NUMBER : WORD);
    if (found === undefined) throw this.#unexpected();
    return JSON.parse(found) as string | number | boolean | null;
  }

  #members(depth: number): Map<string, JsonNode> {
    const members = new Map<string, JsonNode>();
    this.#list("}", () => {
      const start = this.at;
      const name = this.#take(STRING);
      if (name === undefined) throw this.#unexpected();
      const key = JSON.parse(name) as string;
      if (members.has(key)) throw new JsonSyntaxError(`has ${name} twice in one object`, start);
      this.space();
      if (this.#text[this.at] !== ":") throw this.#unexpected();
      this.at += 1;
      members.set(key, this.value(depth + 1));
    });
    return members;
  }

  #items(depth: number): JsonNode[] {
    const items: JsonNode[] = [];
    this.#list("]", () => items.push(this.value(depth + 1)));
    return items;
  }

  #list(close: string, element: () => void): void {
    this.at += 1;
    this.space();
    if (this.#text[this.at] === close) {
      this.at += 1;
      return;
    }
    for (;;) {
      this.space();
      element();
      this.space();
      const next = this.#text[this.at];
      if (next !== close && next !== ",") throw this.#unexpected();
      this.at += 1;
      if (next === close) return;
    }
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.at += found.length;
    return found;
  }

  #unexpected(): JsonSyntaxError {
    const found = this.#text[this.at];
    const message =
      found === undefined ? "ends too early" : `has ${JSON.stringify(found)} where it cannot be`;
    return new JsonSyntaxError(message, this.at);
  }
}

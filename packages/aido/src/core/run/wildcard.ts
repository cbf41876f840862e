import { fitsInOrder } from "./fits-in-order.ts";

/** What one character of a name may be, or any number of any characters. */
type Token = "many" | ((char: string) => boolean);

/** A name with `*`, `?` and `[..]`, as in a shell: wildcards do not match a leading dot. */
export class Wildcard {
  readonly #tokens: readonly Token[];
  readonly #allowsDot: boolean;

  constructor(text: string) {
    this.#tokens = toTokens([...text]);
    this.#allowsDot = text.startsWith(".");
  }

  fits(name: string): boolean {
    if (name.startsWith(".") && !this.#allowsDot) return false;
    return fitsInOrder(this.#tokens, [...name], {
      isMany: (token) => token === "many",
      fits: (token, char) => token !== "many" && token(char),
    });
  }
}

function toTokens(chars: readonly string[]): readonly Token[] {
  const tokens: Token[] = [];
  for (let i = 0; i < chars.length; i++) {
    const char = chars[i] ?? "";
    if (char === "*") tokens.push("many");
    else if (char === "?") tokens.push(() => true);
    else if (char === "\\" && i + 1 < chars.length) tokens.push(only(chars[++i] ?? ""));
    else {
      const end = char === "[" ? chars.indexOf("]", i + 2) : -1;
      tokens.push(end < 0 ? only(char) : toClass(chars.slice(i + 1, end)));
      if (end >= 0) i = end;
    }
  }
  return tokens;
}

function only(wanted: string): Token {
  return (char) => char === wanted;
}

/** A range that runs backwards stands for nothing. */
function toClass(body: readonly string[]): Token {
  const negated = body[0] === "!" || body[0] === "^";
  const ranges: { from: number; to: number }[] = [];
  for (let i = negated ? 1 : 0; i < body.length; i++) {
    const isRange = body[i + 1] === "-" && i + 2 < body.length;
    ranges.push({ from: codeOf(body[i]), to: codeOf(body[isRange ? i + 2 : i]) });
    if (isRange) i += 2;
  }
  return (char) => {
    const code = codeOf(char);
    return ranges.some(({ from, to }) => from <= code && code <= to) !== negated;
  };
}

function codeOf(char = ""): number {
  return char.codePointAt(0) ?? -1;
}

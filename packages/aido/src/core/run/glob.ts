/** One way to match a path: per segment a text, a test, or `**` for any number of segments. */
export type GlobSegment =
  | { kind: "literal"; text: string }
  | { kind: "wild"; test: RegExp }
  | { kind: "any" };

const MAX_ALTERNATIVES = 1_000;

/**
 * Compiles `*`, `?`, `[..]`, `{a,b}` and `**`. Braces make several alternatives. As in a shell, wildcards
 * do not match a leading dot. Undefined when the braces stand for too many alternatives.
 */
export function compileGlob(pattern: string): readonly (readonly GlobSegment[])[] | undefined {
  const alternatives = expandBraces(pattern);
  return alternatives?.map((alternative) =>
    alternative
      .split("/")
      .filter((segment) => segment !== "" && segment !== ".")
      .map(toSegment),
  );
}

/** Whether a relative path fits a pattern; for paths that exist only as text. */
export function matchesGlob(pattern: string, path: string): boolean {
  const names = path.split("/");
  return compileGlob(pattern)?.some((segments) => fits(segments, names)) ?? false;
}

/** Backtracks over `**` only, with memory, so that a hostile path or pattern costs segments times names. */
function fits(segments: readonly GlobSegment[], names: readonly string[]): boolean {
  const seen = new Set<string>();
  const at = (segment: number, name: number): boolean => {
    const key = `${segment}:${name}`;
    if (seen.has(key)) return false;
    seen.add(key);
    const part = segments[segment];
    if (part === undefined) return name === names.length;
    if (part.kind === "any") return at(segment + 1, name) || (name < names.length && at(segment, name + 1));
    const text = names[name];
    return text !== undefined && segmentFits(part, text) && at(segment + 1, name + 1);
  };
  return at(0, 0);
}

export function segmentFits(segment: GlobSegment, name: string): boolean {
  if (segment.kind === "literal") return segment.text === name;
  return segment.kind === "any" || segment.test.test(name);
}

function toSegment(text: string): GlobSegment {
  if (text === "**") return { kind: "any" };
  if (!/[*?[\\]/.test(text)) return { kind: "literal", text };
  return {
    kind: "wild",
    test: new RegExp(`^${text.startsWith(".") ? "" : "(?!\\.)"}${toSource(text)}$`, "su"),
  };
}

function toSource(text: string): string {
  let source = "";
  for (let i = 0; i < text.length; i++) {
    const char = text[i] ?? "";
    if (char === "*") {
      // A row of stars means one; several in a row would only make matching slow.
      while (text[i + 1] === "*") i++;
      source += ".*";
    } else if (char === "?") source += ".";
    else if (char === "\\" && i + 1 < text.length) source += escapeChar(text[++i] ?? "");
    else if (char === "[") {
      const end = text.indexOf("]", i + 2);
      if (end < 0) source += "\\[";
      else {
        source += toClass(text.slice(i + 1, end));
        i = end;
      }
    } else source += escapeChar(char);
  }
  return source;
}

function toClass(body: string): string {
  const negated = body.startsWith("!") || body.startsWith("^");
  const chars = (negated ? body.slice(1) : body).replace(/[\\\]^[&~|]/g, "\\$&");
  const ordered = chars.replace(/(.)-(.)/gsu, (range, from: string, to: string) => (from <= to ? range : ""));
  if (ordered === "") return negated ? "." : "(?!)";
  return `[${negated ? "^" : ""}${ordered}]`;
}

function escapeChar(char: string): string {
  return char.replace(/[$()*+./?[\\\]^{|}]/g, "\\$&");
}

/** `a{b,c{d,e}}` as `ab`, `acd`, `ace`. A brace without a comma or without an end stands for itself. */
function expandBraces(pattern: string): readonly string[] | undefined {
  const done: string[] = [];
  const open = [{ head: "", rest: pattern }];
  for (let item = open.pop(); item !== undefined; item = open.pop()) {
    const brace = findBraces(item.rest);
    if (brace === undefined) {
      done.push(item.head + item.rest);
    } else {
      const { start, end, parts } = brace;
      const before = item.head + item.rest.slice(0, start);
      const after = item.rest.slice(end + 1);
      for (const part of [...parts].reverse()) open.push({ head: "", rest: before + part + after });
    }
    if (done.length + open.length > MAX_ALTERNATIVES) return undefined;
  }
  return done;
}

function findBraces(text: string): { start: number; end: number; parts: string[] } | undefined {
  for (let start = text.indexOf("{"); start >= 0; start = text.indexOf("{", start + 1)) {
    let depth = 0;
    let from = start + 1;
    const parts: string[] = [];
    for (let i = start; i < text.length; i++) {
      if (text[i] === "{") depth++;
      else if (text[i] === "," && depth === 1) {
        parts.push(text.slice(from, i));
        from = i + 1;
      } else if (text[i] === "}" && --depth === 0) {
        if (parts.length === 0) break;
        parts.push(text.slice(from, i));
        return { start, end: i, parts };
      }
    }
  }
  return undefined;
}

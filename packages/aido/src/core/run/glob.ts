import { fitsInOrder } from "./fits-in-order.ts";
import { Wildcard } from "./wildcard.ts";

/** One way to match a path: per segment a text, a test, or `**` for any number of segments. */
export type GlobSegment =
  | { kind: "literal"; text: string }
  | { kind: "wild"; wildcard: Wildcard }
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

/** Whether a relative path fits one of the alternatives; for paths that exist only as text. */
export function globFits(alternatives: readonly (readonly GlobSegment[])[], path: string): boolean {
  const names = path.split("/");
  const how = { isMany: (segment: GlobSegment) => segment.kind === "any", fits: segmentFits };
  return alternatives.some((segments) => fitsInOrder(segments, names, how));
}

export function segmentFits(segment: GlobSegment, name: string): boolean {
  if (segment.kind === "literal") return segment.text === name;
  return segment.kind === "any" || segment.wildcard.fits(name);
}

function toSegment(text: string): GlobSegment {
  if (text === "**") return { kind: "any" };
  if (!/[*?[\\]/.test(text)) return { kind: "literal", text };
  return { kind: "wild", wildcard: new Wildcard(text) };
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

import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const ROOT = new URL(".", import.meta.url).pathname;
const sources = readdirSync(ROOT, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
  .map((name) => [name, readFileSync(ROOT + name, "utf8")] as const);
const imports = (text: string): string[] =>
  [...text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)].map(([, name]) => name ?? "");

test("there are sources to look at", () => {
  expect(sources.map(([name]) => name)).toContain("client/transport.ts");
});

test.each(sources)("%s needs nothing that a browser lacks", (_, text) => {
  expect(imports(text).filter((name) => !/^\.{1,2}\//.test(name) && name !== "zod")).toEqual([]);
  // Of `crypto`, pages that came over plain HTTP have random values only.
  expect(text).not.toMatch(/\bcrypto\.(?!getRandomValues\b)/);
  expect(text).not.toMatch(/\bBuffer\b|\brequire\(|\bNodeJS\.|\bsetImmediate\b|(?<![.?"\w])process\./);
});

test("zod is the one dependency, and only schemas load it", () => {
  const manifest = JSON.parse(readFileSync(`${ROOT}../package.json`, "utf8")) as Record<string, object>;
  expect(Object.keys(manifest["dependencies"] ?? {})).toEqual(["zod"]);
  const users = sources.filter(([, text]) => imports(text).includes("zod")).map(([name]) => name);
  expect(users.every((name) => name.startsWith("schemas/"))).toBe(true);
  const client = sources.filter(([name]) => name.startsWith("client/"));
  for (const [, text] of client) expect(text).not.toMatch(/import \{[^}]*\} from "\.\.\/schemas/);
});

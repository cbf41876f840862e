import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { AidoServer } from "./aido-server.ts";

const ROOT = new URL("../../../../", import.meta.url).pathname;
const PAGES = ["packages/sdk/README.md", "docs/guides/sdk.md"];
const COMPILER_OPTIONS =
  "--ignoreConfig --noEmit --strict --module nodenext --target es2022 --lib esnext,dom --types node --skipLibCheck";

interface Example {
  name: string;
  code: string;
  /** The block after it. */
  printed: string | undefined;
}

const examples = PAGES.flatMap((page): Example[] =>
  readFileSync(join(ROOT, page), "utf8")
    .split(/^```ts\n/m)
    .slice(1)
    .map((part, index) => {
      const [code = "", between, printed] = part.split(/^```(?:text)?\n/m);
      return { name: `${page} ${index + 1}`, code, printed: between?.trim() === "" ? printed : undefined };
    }),
);

let server: AidoServer;
let directory: string;
beforeAll(async () => {
  server = await AidoServer.start();
  // Within the tree, where `@aido/sdk` is found by its name.
  await mkdir(join(ROOT, ".cache"), { recursive: true });
  directory = await mkdtemp(join(ROOT, ".cache", "examples-"));
  for (const [index, { code }] of examples.entries()) await writeFile(fileOf(index), code);
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
  await server[Symbol.asyncDispose]();
});

const fileOf = (index: number): string => join(directory, `example-${index}.mts`);

test("there are examples, and each says what it prints", () => {
  for (const page of PAGES) expect(examples.some(({ name }) => name.startsWith(page))).toBe(true);
  expect(examples.filter(({ printed }) => printed === undefined)).toEqual([]);
});

test("the examples are correct TypeScript", async () => {
  const compiler = join(ROOT, "node_modules", ".bin", "tsc");
  const files = examples.map((_, index) => fileOf(index));
  const wrong = await promisify(execFile)(compiler, [...COMPILER_OPTIONS.split(" "), ...files], {
    cwd: directory,
  }).catch((thrown: { stdout: string }) => thrown);
  expect(wrong.stdout).toBe("");
});

test.each(examples.map((example, index) => ({ ...example, index })))(
  "$name prints what it says",
  async ({ index, printed }) => {
    vi.stubEnv("AIDO_URL", server.url);
    const log = vi.spyOn(console, "log").mockImplementation(() => undefined);
    try {
      await import(fileOf(index));
      const lines = log.mock.calls.map((words) => `${words.join(" ")}\n`);
      expect(lines.join("")).toBe(printed);
    } finally {
      log.mockRestore();
      vi.unstubAllEnvs();
    }
    expect(JSON.parse(await server.local("ls", "--json"))).toEqual([]);
  },
);

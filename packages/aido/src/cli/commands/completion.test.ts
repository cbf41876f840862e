import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { buildProgram } from "../program/build-program.ts";
import { fakeContext } from "../testing/fake-context.ts";
import { completion } from "./completion.ts";

const program = buildProgram("0.0.0", () => Promise.resolve());

async function script(shell: string): Promise<string> {
  const context = fakeContext();
  await completion(context, program, shell);
  return context.stdout.text;
}

/** What bash would offer for the words, of which the last is being typed. */
async function offered(...words: string[]): Promise<string[]> {
  const list = words.map((word) => `'${word}'`).join(" ");
  const test = `${await script("bash")}
aido() { echo sandbox1; }
COMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _aido; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await promisify(execFile)("bash", ["--noprofile", "--norc", "-c", test]);
  return stdout.trim().split("\n");
}

test("bash offers commands, their subcommands and options", async () => {
  expect(await offered("aido", "in")).toEqual(["inspect"]);
  expect(await offered("aido", "sandbox", "")).toEqual(expect.arrayContaining(["up", "list", "destroy"]));
  expect(await offered("aido", "sandbox", "up", "--te")).toEqual(["--template"]);
  expect(await offered("aido", "exec", "--js")).toEqual(["--json"]);
});

test("bash offers sandboxes where one is expected", async () => {
  expect(await offered("aido", "inspect", "san")).toEqual(["sandbox1"]);
  expect(await offered("aido", "doctor", "san")).toEqual([""]);
});

test("zsh and fish get a script too, an unknown shell a refusal", async () => {
  expect(await script("zsh")).toContain("bashcompinit");
  expect(await script("fish")).toContain("complete -c aido");
  // Files would drown them.
  const sandboxes = (await script("fish")).split("\n").filter((line) => line.includes("aido ls --quiet"));
  for (const line of sandboxes) expect(line).toContain("complete -c aido -f -n");
  await expect(script("tcsh")).rejects.toMatchObject({ hint: expect.stringContaining("fish") });
});

import { expect, test } from "vitest";
import { parseSpec } from "./parse-spec.ts";
import type { SpecProblem } from "./spec-problem.ts";

const MINIMAL = "name: replay-incident\nruntime: python\nttl: 20m\n";

async function firstProblem(text: string): Promise<SpecProblem> {
  const thrown: unknown = await parseSpec(text).catch((error: unknown) => error);
  const { details } = thrown as { details: { problems: readonly SpecProblem[] } };
  const [problem] = details.problems;
  if (problem === undefined) throw new Error("no problem was told");
  return problem;
}

test("S0-16 S0-17 S0-18 S0-90 permissions.aws is checked, and refused while nothing enforces it", async () => {
  const problem = await firstProblem(
    `${MINIMAL}permissions:\n  aws:\n    role: readonly\n    services: [s3]\n`,
  );
  expect(problem).toMatchObject({ line: 6, path: "permissions.aws" });
  expect(problem.message).toContain("not enforced yet");
  expect(problem.fix).toContain("Remove permissions.aws");
});

test("S0-17 S0-18 what is wrong in it is told first", async () => {
  expect((await firstProblem(`${MINIMAL}permissions: { aws: { role: admin } }\n`)).message).toContain(
    "must be readonly or readwrite",
  );
  expect((await firstProblem(`${MINIMAL}permissions: { aws: { services: s3 } }\n`)).message).toContain(
    "must be a list",
  );
  expect((await firstProblem(`${MINIMAL}permissions: { gcp: {} }\n`)).message).toContain("unknown key");
});

test("S0-16 an empty permissions asks for nothing and is accepted", async () => {
  expect((await parseSpec(`${MINIMAL}permissions: {}\n`)).name).toBe("replay-incident");
});

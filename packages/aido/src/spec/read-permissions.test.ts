import { expect, test } from "vitest";
import { parseSpec } from "./parse-spec.ts";
import type { SpecProblem } from "./spec-problem.ts";

const MINIMAL = "name: replay-incident\nruntime: python\nttl: 20m\n";

async function problemOf(aws: string): Promise<SpecProblem> {
  const thrown: unknown = await parseSpec(`${MINIMAL}permissions: { aws: ${aws} }\n`).catch(
    (error: unknown) => error,
  );
  const { details } = thrown as { details: { problems: readonly SpecProblem[] } };
  const [problem] = details.problems;
  if (problem === undefined) throw new Error("no problem was told");
  return problem;
}

test("S0-16 S0-17 S0-18 permissions.aws is a role and the services it is for", async () => {
  const text = `${MINIMAL}permissions:\n  aws:\n    role: readwrite\n    services: [s3, dynamodb]\n`;
  expect((await parseSpec(text)).permissions).toEqual({
    aws: { role: "readwrite", services: ["s3", "dynamodb"] },
  });
  const short = await parseSpec(`${MINIMAL}permissions: { aws: { services: [sqs] } }\n`);
  expect(short.permissions).toEqual({ aws: { role: "readonly", services: ["sqs"] } });
  const arn = "arn:aws:iam::123456789012:role/team/reader";
  const named = await parseSpec(`${MINIMAL}permissions: { aws: { role: "${arn}", services: [s3] } }\n`);
  expect(named.permissions?.aws?.role).toBe(arn);
});

test.each([
  ["{ role: admin, services: [s3] }", "permissions.aws.role", "must be readonly, readwrite or the ARN", ""],
  ['{ role: "arn:aws:iam::1:role/x", services: [s3] }', "permissions.aws.role", "the ARN of a role", ""],
  ["{ services: s3 }", "permissions.aws.services", "must be a list", ""],
  ["{ role: readonly }", "permissions.aws", "services is missing", "services: [s3]"],
  ["{ services: [] }", "permissions.aws.services", "is empty", "services: [s3]"],
  ["{ services: [s3, dynamo] }", "permissions.aws.services[1]", "no AWS service", "Did you mean dynamodb?"],
  ["{ services: [s3, frobnicator] }", "permissions.aws.services[1]", "no AWS service", "acm, apigateway"],
  ["{ services: [s3], region: x }", "permissions.aws.region", "unknown key", ""],
])("S0-17 S0-18 %s is told with its place and what to write", async (aws, path, message, fix) => {
  const problem = await problemOf(aws);
  expect(problem).toMatchObject({ line: 4, path });
  expect(problem.message).toContain(message);
  expect(problem.fix).toContain(fix);
});

test("S0-16 an empty permissions asks for nothing and is accepted", async () => {
  expect((await parseSpec(`${MINIMAL}permissions: {}\n`)).permissions).toBeUndefined();
});

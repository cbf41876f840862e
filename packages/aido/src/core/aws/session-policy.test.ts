import { AWS_SERVICES } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { sessionPolicy } from "./session-policy.ts";

interface Policy {
  Statement: [{ Effect: string; Action: string[]; Resource: string; Condition?: unknown }];
}
const statement = (role: string, services: readonly string[], until?: Date) =>
  (JSON.parse(sessionPolicy({ role, services }, until)) as Policy).Statement[0];

test("S0-18 S0-90 readonly gives what only looks, readwrite and a named role the services in full", () => {
  expect(statement("readonly", ["s3"])).toEqual({
    Effect: "Allow",
    Action: ["s3:Get*", "s3:List*"],
    Resource: "*",
  });
  expect(statement("readwrite", ["sqs", "s3", "s3"]).Action).toEqual(["s3:*", "sqs:*"]);
  expect(statement("arn:aws:iam::123456789012:role/x", ["s3"]).Action).toEqual(["s3:*"]);
});

test("S0-18 nothing that readonly gives changes something or hands out credentials", () => {
  const bad =
    /:(\*|Put|Create|Delete|Update|Send|Publish|Invoke|Receive|Assume|GetSessionToken|GetFederation|Decrypt)/;
  for (const service of AWS_SERVICES) {
    const { Action } = statement("readonly", [service]);
    expect(Action.length).toBeGreaterThan(0);
    for (const action of Action) {
      expect(action).toMatch(new RegExp(`^${service}:[A-Z][A-Za-z]*\\*?$`));
      expect(action).not.toMatch(bad);
    }
  }
  expect(statement("readonly", ["sts"]).Action).not.toContain("sts:Get*");
});

test.each(["iam", "sts", "organizations"])("%s is never given in full", (service) => {
  expect(() => statement("readwrite", ["s3", service])).toThrow("with the role readonly alone");
});

test("an end before STS's own is a condition of the policy", () => {
  expect(statement("readonly", ["s3"], new Date("2026-01-01T00:05:00.250Z")).Condition).toEqual({
    DateLessThan: { "aws:CurrentTime": "2026-01-01T00:05:00Z" },
  });
});

test("more services than a policy can name are refused, and all fit that do", () => {
  expect(() => statement("readonly", AWS_SERVICES)).toThrow(/and STS takes 2048/);
  expect(sessionPolicy({ role: "readonly", services: AWS_SERVICES.slice(0, 20) }).length).toBeLessThan(2049);
});

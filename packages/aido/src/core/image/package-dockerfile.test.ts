import { isAidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { packageDockerfile } from "./package-dockerfile.ts";
import { readBases } from "./read-dockerfile.ts";

test("S3-85 packages become commands that no shell reads, and the base's user stays", () => {
  const packages = {
    apt: ["git", "g++=4:12.2.0-3"],
    pip: ["requests[socks]>=2.32"],
    npm: ["@types/node@22"],
  };
  const text = packageDockerfile("python:3.12-slim", packages, "node");
  expect(text.split("\n")).toEqual([
    "FROM python:3.12-slim",
    "USER root",
    'RUN ["apt-get", "update"]',
    'RUN ["apt-get","install","--yes","--no-install-recommends","git","g++=4:12.2.0-3"]',
    'RUN ["python3","-m","pip","install","--no-cache-dir","--","requests[socks]>=2.32"]',
    'RUN ["npm","install","--global","--no-audit","--no-fund","@types/node@22"]',
    "USER node",
    "",
  ]);
  expect(readBases(text)).toEqual(["python:3.12-slim"]);
});

test.each([
  ["apt", "-o=APT::Update::Pre-Invoke::=id"],
  ["apt", "git curl"],
  ["apt", "git\nRUN id"],
  ["pip", "--index-url=http://evil"],
  ["pip", "git+https://evil/x"],
  ["pip", "./local"],
  ["npm", "../../etc"],
  ["npm", "http://evil/x.tgz"],
  ["npm", "x@file:/etc"],
])("S3-85 for %s the name %j is refused", (manager, name) => {
  expect(() => packageDockerfile("a", { [manager]: [name] }, undefined)).toThrow(
    expect.toSatisfy((error: unknown) => isAidoError(error, "VALIDATION_ERROR")),
  );
});

test("a base without packages is refused", () => {
  expect(() => packageDockerfile("a", { apt: [] }, undefined)).toThrow("base itself");
});

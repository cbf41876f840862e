import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { findLockFiles } from "./lock-files.ts";
import { checkOwnDockerfile, fillTemplate } from "./project-dockerfile.ts";

const TEMPLATE = readFileSync(
  new URL("../../../../../../images/swarm-base/project.Dockerfile", import.meta.url),
  "utf8",
);
const WHOLE = { hasSource: true, hasSettings: true };
const commands = (text: string) => text.split("\n").filter((line) => /^[A-Z]+ /.test(line));

test.each([
  ["FROM aimi-sandbox:base\nRUN true\n", ["aimi-sandbox:base"]],
  ["# a comment\n\n  from aimi-sandbox:base\n", ["aimi-sandbox:base"]],
  ["FROM aimi-sandbox-other:latest AS x\nFROM busybox\n", ["aimi-sandbox-other:latest", "busybox"]],
  ["FROM aimi-sandbox\n", ["aimi-sandbox"]],
])("S1-12 S1-21 a project's own Dockerfile may begin %j", (text, bases) => {
  expect(checkOwnDockerfile(text)).toEqual(bases);
});

test.each([
  ["FROM node:20\n", 1],
  ["\n# why\nFROM ubuntu\n", 3],
  ["ARG X=1\nFROM aimi-sandbox:base\n", 1],
  ["FROM aimi-sandboxes.example/evil\n", 1],
  ["FROM aimi-sandbox/evil:base\n", 1],
  ["FROM --platform=linux/arm64 aimi-sandbox:base\n", 1],
  ["RUN id\nFROM aimi-sandbox:base\n", 1],
  ["# escape=`\nFROM aimi-sandbox:base\n", 1],
  ["FROM aimi-sandbox:base\nRUN --mount=type=secret id\n", 2],
  ["FROM aimi-sandbox:base\nADD http://host/x /x\n", 2],
  ["FROM aimi-sandbox:base\nNONSENSE\n", 2],
  ["", 1],
])("S1-21 a Dockerfile that is %j is refused with file and line", (text, line) => {
  expect(() => checkOwnDockerfile(text)).toThrow(
    expect.objectContaining({
      code: "VALIDATION_ERROR",
      message: expect.stringContaining(`.aimi/Dockerfile.sandbox:${line}: `),
      details: expect.objectContaining({ line }),
    }),
  );
});

test.each([
  [["package-lock.json"], ["npm:package-lock.json"]],
  [["npm-shrinkwrap.json", "package-lock.json"], ["npm:npm-shrinkwrap.json"]],
  [["pnpm-lock.yaml", "package-lock.json"], ["pnpm:pnpm-lock.yaml"]],
  [["yarn.lock"], ["yarn:yarn.lock"]],
  [["requirements.txt"], ["pip:requirements.txt"]],
  [["uv.lock", "requirements.txt"], ["uv:uv.lock"]],
  [["Cargo.lock"], ["cargo:Cargo.lock"]],
  [["go.sum"], ["go:go.sum"]],
  [
    ["go.sum", "package-lock.json", "requirements.txt"],
    ["npm:package-lock.json", "pip:requirements.txt", "go:go.sum"],
  ],
])("S1-14 S1-22 the template installs by %j", (names, expected) => {
  const found = findLockFiles(new Set(names));
  const text = fillTemplate(TEMPLATE, { ...WHOLE, found });
  expect(text).toContain(
    `RUN ${JSON.stringify(["/opt/aimi/install-dependencies", ...expected]).replaceAll(",", ", ")}`,
  );
  const tools = JSON.stringify(["/opt/aimi/install-tools", ...found.map(({ kind }) => kind)]);
  expect(text).toContain(`USER root\nRUN ${tools.replaceAll(",", ", ")}\nUSER 1000:1000\n`);
});

test("S1-12 S1-13 S1-22 without a lock file the template copies and installs nothing", () => {
  expect(
    commands(fillTemplate(TEMPLATE, { ...WHOLE, found: findLockFiles(new Set(["README.md"])) })),
  ).toEqual([
    "FROM aimi-sandbox:base",
    "USER root",
    "USER 1000:1000",
    "COPY --chown=1000:1000 source/ /workspace/",
    "COPY --chown=1000:1000 settings/ /workspace/",
  ]);
  const bare = fillTemplate(TEMPLATE, { found: [], hasSource: false, hasSettings: false });
  expect(commands(bare)).not.toContainEqual(expect.stringContaining("COPY"));
});

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { LANGUAGE_IMAGES, languageImage } from "./aliases.ts";
import { readBases } from "./read-dockerfile.ts";

const IMAGES = new URL("../../../../../images/", import.meta.url);

test.each(Object.entries(LANGUAGE_IMAGES))(
  "S3-36 S3-37 S3-38 S3-81 %s has a Dockerfile on the official image, without setuid programs and without root",
  (language, image) => {
    const dockerfile = readFileSync(new URL(`${language}/Dockerfile`, IMAGES), "utf8");
    expect(readBases(dockerfile)).toEqual([image]);
    expect(dockerfile).toContain("-perm -4000 -exec chmod u-s");
    const users = [...dockerfile.matchAll(/^USER (.*)$/gm)].map((match) => match[1]);
    expect(users).toEqual([expect.stringMatching(/^(sandbox|node|bun)$/)]);
  },
);

test("other words mean the same, and inherited names mean nothing", () => {
  expect(languageImage("javascript")).toBe(languageImage("node"));
  expect(languageImage("golang")).toBe(languageImage("go"));
  expect(languageImage("toString")).toBeUndefined();
});

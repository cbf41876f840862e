import { isAidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { readBases } from "./read-dockerfile.ts";

test.each([
  ["FROM python:3.12-slim\nRUN pip install x", ["python:3.12-slim"]],
  [
    "# syntax=docker/dockerfile:1\nARG V=1\nfrom --platform=linux/amd64 node AS Build\nFROM build\n",
    ["node"],
  ],
  ["FROM scratch\nCOPY --from=busybox:1 /bin/sh /bin/sh", ["busybox:1"]],
  ["FROM a AS one\nFROM b\nCOPY --from=ONE /x /x\nCOPY --from=0 /y /y", ["a", "b"]],
  ["FROM a\nRUN one \\\n  # a comment\n\n  two \\\n  FROM c\nFROM b", ["a", "b"]],
  ["\ufeffFROM a\r\nADD --chown=1:1 app/*.tar.gz /srv/\r\n", ["a"]],
  // The engine knows a stage by its name only when the next one has begun; before, the name is an image's.
  ["FROM a AS mine\nCOPY --from=mine /x /x", ["a", "mine"]],
])("S3-85 the images of %j are found", (dockerfile, bases) => {
  expect(readBases(dockerfile)).toEqual(bases);
});

test.each([
  ["", /no FROM/],
  ["RUN true", /first instruction/],
  ["FROM $BASE", /without variables/],
  ['FROM "a"', /without variables/],
  ["FROM a AS", /must name an image/],
  ["# escape=`\nFROM a", /escape/],
  ["FROM a\nCOPY --from=$X /a /b", /not taken/],
  ['FROM a\nCOPY --fr"om"=evil /a /b', /not taken/],
  ["FROM a\nRUN --mount=type=bind,from=evil true", /not taken/],
  ["FROM a\nRUN --network=host true", /not taken/],
  ["FROM a\nADD http://169.254.169.254/x /x", /ADD takes files/],
  ['FROM a\nADD ["http://x/y","/x"]', /ADD takes files/],
  ['FROM a\nADD ht""tp://x/y /x', /ADD takes files/],
  ["FROM a\nENV U=http://x\nADD $U /x", /ADD takes files/],
  ["FROM a\nADD \\\n http://x/y /x", /ADD takes files/],
  ["FROM a\nONBUILD COPY --from=evil / /", /ONBUILD/],
  ["FROM a\nINCLUDE b", /no instruction INCLUDE/],
])("S3-85 %j is refused", (dockerfile, why) => {
  const thrown = (() => {
    try {
      return readBases(dockerfile);
    } catch (error) {
      return error;
    }
  })();
  expect(thrown).toSatisfy((error) => isAidoError(error, "VALIDATION_ERROR"));
  expect(thrown).toMatchObject({ message: expect.stringMatching(why) });
});

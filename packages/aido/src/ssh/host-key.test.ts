import ssh2 from "ssh2";
import { expect, test } from "vitest";
import { readableKey } from "./host-key.ts";

test("every host key that is made can be read, although not all that the library makes can", () => {
  const { utils } = ssh2;
  const types = Array.from({ length: 600 }, () => utils.parseKey(readableKey(utils)));
  expect(types.filter((key) => key instanceof Error)).toEqual([]);
});

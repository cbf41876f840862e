import { expect, test } from "vitest";
import { parsePool } from "./parse-pool.ts";
import { Shelf } from "./shelf.ts";

test("a pool is given as images and numbers, or as JSON with what else tells kinds apart", () => {
  expect(parsePool(undefined)).toEqual([]);
  expect(parsePool("  ")).toEqual([]);
  const server = { profile: "server", history: true };
  expect(parsePool("python=4, registry.example/a/b:1=2")).toEqual([
    { size: 4, request: { ...server, image: "python" } },
    { size: 2, request: { ...server, image: "registry.example/a/b:1" } },
  ]);
  const json = [
    { image: "node", size: 1, isolation: "gvisor", limits: { cpus: 2 }, network: "bridge", history: false },
  ];
  expect(parsePool(JSON.stringify(json))).toEqual([
    {
      size: 1,
      request: {
        profile: "server",
        image: "node",
        isolation: "gvisor",
        limits: { cpus: 2 },
        network: "bridge",
        history: false,
      },
    },
  ]);
});

test.each([
  "python",
  "python=0",
  "python=-1",
  "python=4;node=2",
  "python=99999",
  "[",
  "[1]",
  '[{"size":1}]',
  '[{"image":"a"}]',
  '[{"image":"a","size":1.5}]',
  '[{"image":"a","size":1,"privileged":true}]',
  '[{"image":"a","size":1,"network":"host"}]',
  '[{"image":"a","size":1,"isolation":"none"}]',
  '[{"image":"a","size":1,"limits":{"cpu":1}}]',
  '[{"image":"a","size":1,"limits":{"cpus":"1"}}]',
])("a pool cannot be %s, and the message says how it is written", (text) => {
  expect(() => parsePool(text)).toThrow(
    expect.objectContaining({ code: "INVALID_CONFIG", hint: expect.stringContaining("python=4,node=2") }),
  );
});

test("a shelf holds what was asked for within a minute, not less than its size and not more than twice it", () => {
  const shelf = new Shelf({ key: "k", size: 3, request: {}, image: "a" });
  expect(shelf.target(0)).toBe(3);
  for (let at = 0; at < 5; at += 1) shelf.asked(at);
  expect(shelf.target(10)).toBe(5);
  for (let at = 5; at < 1000; at += 1) shelf.asked(at);
  expect(shelf.target(1000)).toBe(6);
  expect(shelf.target(60_998)).toBe(3);
});

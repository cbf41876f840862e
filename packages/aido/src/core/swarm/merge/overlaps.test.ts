import { expect, test } from "vitest";
import { addChanged, findOverlaps } from "./overlaps.ts";

test("files that several workers change are told by path, with the workers", () => {
  const changed = new Map([
    ["login", new Set(["src/app.ts", "README.md", "src/login.ts"])],
    ["cart", new Set(["src/cart.ts", "src/app.ts"])],
    ["about", new Set(["README.md", "src/app.ts"])],
  ]);
  expect(findOverlaps(changed)).toEqual([
    { path: "README.md", workers: ["about", "login"] },
    { path: "src/app.ts", workers: ["about", "cart", "login"] },
  ]);
  expect(findOverlaps(new Map())).toEqual([]);
});

test("reports add up, to a limit", () => {
  const some = addChanged(new Set(["a"]), ["a", "b"]);
  expect([...some]).toEqual(["a", "b"]);
  expect(addChanged(some, ["b"])).toBe(some);
  const many = Array.from({ length: 20_000 }, (_, index) => `f${index}`);
  expect(addChanged(some, many).size).toBe(10_000);
});

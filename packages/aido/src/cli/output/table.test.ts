import { expect, test } from "vitest";
import { type Column, table } from "./table.ts";
import { textWidth } from "./text-width.ts";

interface Row {
  id: string;
  name: string;
  size: string;
}
const columns: Column<Row>[] = [
  { title: "ID", value: (row) => row.id },
  { title: "NAME", value: (row) => row.name, flexible: true },
  { title: "SIZE", value: (row) => row.size, align: "right" },
];

test("columns line up, numbers to the right", () => {
  const rows = [
    { id: "a1", name: "first", size: "1" },
    { id: "b22222", name: "x", size: "1024" },
  ];
  expect(table(rows, columns, undefined)).toBe(
    "ID      NAME   SIZE\na1      first     1\nb22222  x      1024\n",
  );
});

test("a narrow terminal cuts the flexible column and marks the cut", () => {
  const rows = [{ id: "a1", name: "a-very-long-name-indeed", size: "1" }];
  const lines = table(rows, columns, 24).trimEnd().split("\n");
  expect(lines[1]).toContain("…");
  for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(24);
});

test("wide letters and combining marks do not push columns aside", () => {
  const rows = [
    { id: "漢字", name: "e\u0301", size: "1" },
    { id: "abcd", name: "e", size: "1" },
  ];
  const [, wide, plain] = table(rows, columns, undefined).split("\n");
  expect(textWidth(wide ?? "")).toBe(textWidth(plain ?? ""));
});

test("a name cannot break out of its cell", () => {
  const text = table([{ id: "a", name: "x\n\u001b[2Jfake  row", size: "1" }], columns, undefined);
  expect(text.split("\n")).toHaveLength(3);
  expect(text).not.toContain("\u001b");
});

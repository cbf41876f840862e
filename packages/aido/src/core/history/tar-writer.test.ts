import { execFileSync } from "node:child_process";
import { lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { tarEnd, tarMember } from "./tar-writer.ts";

test("tar unpacks every name, length, mode, link and time", () => {
  const directory = mkdtempSync(join(tmpdir(), "aido-tar-"));
  try {
    const at = new Date(1_700_000_000_000);
    const long = Buffer.from(`${"long/".repeat(60)}file`).toString("latin1");
    const members: [string, "100644" | "100755" | "120000", Buffer][] = [
      ["plain", "100644", Buffer.from("x")],
      ["run", "100755", Buffer.alloc(512, "r")],
      ["empty", "100644", Buffer.alloc(0)],
      ['d/newline\nand "quotes" =', "100644", Buffer.alloc(513, "n")],
      ["latin\xe9", "100644", Buffer.from("bytes")],
      [long, "100644", Buffer.alloc(100_000, "l")],
      ["link", "120000", Buffer.from(`${"far/".repeat(50)}target\nodd`)],
    ];
    const archive = Buffer.concat([
      ...members.flatMap(([path, mode, content]) => [...tarMember(path, mode, content, at)]),
      tarEnd(),
    ]);
    execFileSync("tar", ["-x", "-C", directory], { input: archive });
    for (const [path, mode, content] of members) {
      const place = Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(path, "latin1")]);
      const stat = lstatSync(place);
      if (mode === "120000") {
        expect(readlinkSync(place)).toBe(content.toString());
      } else {
        expect(readFileSync(place).equals(content)).toBe(true);
        expect(stat.mode & 0o777).toBe(mode === "100755" ? 0o755 : 0o644);
        expect(stat.mtimeMs).toBe(at.getTime());
      }
    }
    expect(readdirSync(directory)).toHaveLength(7);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

test("the length of an extended header counts its own digits", () => {
  for (let length = 80; length < 120; length++) {
    const [, pax] = [...tarMember("p".repeat(length), "100644", Buffer.alloc(0), new Date(0))];
    const text = pax?.toString("latin1") ?? "";
    const claimed = Number(text.slice(0, text.indexOf(" ")));
    expect(text[claimed - 1]).toBe("\n");
    expect(text.slice(claimed).replaceAll("\0", "")).toBe("");
  }
});

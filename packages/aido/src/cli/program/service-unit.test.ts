import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { loadConfig } from "../../config/load-config.ts";
import { buildProgram } from "./build-program.ts";

const UNIT = readFileSync(new URL("../../../../../deploy/aido.service", import.meta.url), "utf8");
const SYSTEMD = "/usr/bin/systemd-analyze";
const valuesOf = (name: string) =>
  [...UNIT.matchAll(new RegExp(`^${name}=(.*)$`, "gm"))].map((match) => match[1] ?? "");

test("S3-62 the systemd unit starts aido with a command and settings that it has", async () => {
  const [program = "", ...argv] = valuesOf("ExecStart")[0]?.split(" ") ?? [];
  expect(program).toBe("/usr/local/bin/aido");
  let acted = 0;
  const act = async () => {
    acted += 1;
  };
  const parsed = buildProgram("0.0.0", act, argv).exitOverride();
  await parsed.parseAsync(argv, { from: "user" });
  expect(acted).toBe(1);
  expect(parsed.args[0]).toBe("serve");
  const env = Object.fromEntries(valuesOf("Environment").map((pair) => pair.split("=", 2)));
  const { settings } = loadConfig({ env: { XDG_CONFIG_HOME: "/nowhere", ...env }, cwd: "/" });
  for (const name of Object.keys(env)) expect(settings.map(({ source }) => source)).toContain(name);
  expect(env["AIDO_DATA_DIR"]).toBe(`/var/lib/${valuesOf("StateDirectory")[0]}`);
});

test.skipIf(!existsSync(SYSTEMD))("S3-62 systemd understands every line of the unit", async () => {
  const directory = mkdtempSync(join(tmpdir(), "aido-unit-"));
  try {
    const file = join(directory, "aido.service");
    // Whether the program is installed is not the unit's matter.
    writeFileSync(file, UNIT.replace("/usr/local/bin/aido", process.execPath));
    const { stdout, stderr } = await promisify(execFile)(SYSTEMD, ["verify", "--man=no", file]);
    const own = `${stdout}${stderr}`.split("\n").filter((line) => line.includes("aido.service"));
    expect(own).toEqual([]);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

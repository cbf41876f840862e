import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { MAIN } from "./aido-process.ts";
import { Project } from "./project.ts";

const run = promisify(execFile);

/** Speaks on the other stream only once what it said on the first has been taken out of its pipe. */
const ALTERNATE = `
import fcntl, os, struct
FIONREAD = 0x541B
def say(fd, text):
    os.write(fd, text.encode())
    while struct.unpack("i", fcntl.ioctl(fd, FIONREAD, b"0000"))[0] > 0: pass
for line in range(40):
    say(1 + line % 2, f"{line}\\n")
`;
const LINES = Array.from({ length: 40 }, (_, line) => `${line}\n`);

test.each([
  ["local", "host"],
  ["docker", "aido-test:python"],
])(
  "S0-55 on %s recorded output is shown in the order it came, or one stream after the other",
  async (driver, image) => {
    await using project = await Project.make(driver, { "alternate.py": ALTERNATE });
    await project.ok(["run", "--image", image, "alternate.py"]);
    const together = async (...argv: string[]) => {
      const call = [process.execPath, MAIN, ...project.globals, "logs", ...argv];
      const options = { cwd: project.directory };
      return (await run("sh", ["-c", 'exec "$@" 2>&1', "sh", ...call], options)).stdout;
    };
    const [odd, even] = [1, 0].map((rest) => LINES.filter((_, line) => line % 2 === rest).join(""));
    expect(await together()).toBe(LINES.join(""));
    expect(await together("--follow")).toBe(LINES.join(""));
    expect(await together("--separate")).toBe(`==> stdout <==\n${even}==> stderr <==\n${odd}`);
    expect(await together("--stderr")).toBe(odd);
  },
);

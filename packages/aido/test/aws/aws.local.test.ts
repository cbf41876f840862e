import { readdir, readFile } from "node:fs/promises";
import { LOCAL_MODES } from "../backends/local-backend.ts";
import { awsSuite } from "./aws-suite.ts";

/** The command lines of everything that runs on this machine. */
async function commandLines(): Promise<string> {
  const processes = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  // Some end meanwhile.
  const read = (pid: string) => readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "");
  return (await Promise.all(processes.map(read))).join("\n");
}

for (const { name, make } of LOCAL_MODES) awsSuite(name, make, commandLines);

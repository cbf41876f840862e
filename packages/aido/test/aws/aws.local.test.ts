import { readdir, readFile } from "node:fs/promises";
import { makeLocalBackend } from "../backends/local-backend.ts";
import { awsSuite } from "./aws-suite.ts";

awsSuite(
  "local",
  () => makeLocalBackend(),
  async () => {
    const processes = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
    // Some end meanwhile.
    const read = (pid: string) => readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "");
    return (await Promise.all(processes.map(read))).join("\n");
  },
);

import { readFileSync } from "node:fs";
import { writeAtomically } from "../../core/run/write-atomically.ts";

const HOSTS = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";
const FOR_ALL_TO_READ = 0o644;

/** What an engine writes for the network `none`, as a file that all sandboxes of one data directory share. */
export async function provideHostsFile(path: string): Promise<void> {
  if (readIfThere(path) !== HOSTS) await writeAtomically(path, HOSTS, { mode: FOR_ALL_TO_READ });
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw thrown;
  }
}

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { AidoError } from "@aido/sdk/protocol";
import { printable } from "../supervisor/refusal.ts";

const SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Some files changed while they were read; the archive is good. */
const CHANGED = 1;
/** What sandboxes wrote: names too long, directories nobody may read. It must not make all else fail. */
const OF_A_SANDBOX = /^tar: (local|sandboxes)\//;
const LAST_LINE = /^tar: Exiting with failure status/;

export interface TarResult {
  stdout: string;
  /** Files of sandboxes that are missing from the result. */
  skipped: number;
}

/** GNU tar keeps owners, holes and odd names, follows no link, and leaves no directory it was sent into. */
export async function runTar(argv: readonly string[], signal?: AbortSignal): Promise<TarResult> {
  const child = spawn("tar", ["--force-local", ...argv], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: SEARCH_PATH, LC_ALL: "C" },
    ...(signal && { signal }),
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", (cause: NodeJS.ErrnoException) =>
      reject(cause.code === "ENOENT" ? noTar(cause) : cause),
    );
    child.once("close", resolve);
  });
  const [code, stdout, complaints] = await Promise.all([ended, text(child.stdout), sort(child.stderr)]);
  const { skipped, serious } = complaints;
  if (code === 0 || code === CHANGED || (skipped > 0 && serious.length === 0)) return { stdout, skipped };
  const why = printable(serious.join("; ")).slice(0, 500) || "it gave no reason";
  throw new AidoError("RUNTIME_UNAVAILABLE", `tar failed: ${why}`, { details: { code } });
}

async function sort(stderr: NodeJS.ReadableStream): Promise<{ skipped: number; serious: string[] }> {
  const serious: string[] = [];
  let skipped = 0;
  for await (const line of createInterface({ input: stderr })) {
    if (OF_A_SANDBOX.test(line)) skipped += 1;
    else if (!LAST_LINE.test(line) && serious.length < 3) serious.push(line);
  }
  return { skipped, serious };
}

function noTar(cause: Error): AidoError {
  return new AidoError("RUNTIME_UNAVAILABLE", "There is no tar on this machine", {
    hint: "Install it, for example with `apt-get install tar`.",
    cause,
  });
}

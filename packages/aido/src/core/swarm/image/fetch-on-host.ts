import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { AidoError } from "@aido/sdk/protocol";

export type Fetched = "ground" | "claude";

export interface FetchOptions {
  /** The script, and where it keeps what it fetches. */
  readonly script: string;
  readonly cache: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly onProgress?: ((step: string) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

const LIMIT_MS = 30 * 60_000;
const KEPT_LINES = 20;
/** How the script ends when this machine lacks something, or nothing is to be had for it. */
const LACKS = 3;
const NO_SUCH = 4;

/** Fetches a part of the base on this machine, and tells where it is; at once when it was fetched before. */
export async function fetchOnHost(what: Fetched, options: FetchOptions): Promise<string> {
  options.onProgress?.(what === "ground" ? "Debian's packages" : "Claude Code");
  return await runScript([what, options.cache], options);
}

/** What the answer depends on: equal keys are equal parts. */
export async function fetchKey(what: Fetched, options: FetchOptions): Promise<string> {
  return await runScript(["key", what], options);
}

async function runScript(args: readonly string[], options: FetchOptions): Promise<string> {
  const { signal } = options;
  signal?.throwIfAborted();
  // In a group of its own, so that what it starts ends with it.
  const child = spawn("bash", [options.script, ...args], {
    env: keyless(options.env),
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let isLate = false;
  const stop = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
    } catch {
      // It has ended.
    }
  };
  const timer = setTimeout(() => {
    isLate = true;
    stop();
  }, LIMIT_MS);
  signal?.addEventListener("abort", stop, { once: true });
  const said: string[] = [];
  createInterface({ input: child.stderr }).on("line", (line) => {
    said.push(line);
    if (said.length > KEPT_LINES) said.shift();
    options.onProgress?.(line.replace(/^swarm-base: /, ""));
  });
  let answer = "";
  child.stdout.on("data", (chunk: Buffer) => {
    answer = (answer + chunk.toString()).slice(0, 4096);
  });
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    signal?.throwIfAborted();
    if (code === 0) return answer.trim();
    throw failure(code, said, isLate);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  }
}

/** Programs that fetch need no key of an agent or a forge. */
function keyless(env: FetchOptions["env"]): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && !/^(ANTHROPIC|GITHUB|GH|OPENAI|AWS|AIDO_API)_|_(TOKEN|KEY|SECRET)$/.test(name))
      kept[name] = value;
  }
  return kept;
}

function failure(code: number | null, said: readonly string[], isLate: boolean): AidoError {
  const last = (said.at(-1) ?? `it ended with ${code}`).replace(/^swarm-base: /, "");
  if (isLate) return new AidoError("DEADLINE_EXCEEDED", "Fetching the parts of the base image took too long");
  const lacking = code === LACKS || code === NO_SUCH;
  return new AidoError(
    lacking ? "RUNTIME_UNAVAILABLE" : "IMAGE_BUILD_FAILED",
    `The parts of the base image cannot be fetched on this machine: ${last}`,
    {
      hint: lacking
        ? "Install what is missing, or start from an image: `--from node:20-slim`. Without Claude Code: `--no-claude`."
        : "Are Debian's mirrors and the npm registry reachable? The end of what was said is in details.log.",
      details: { log: said.join("\n") },
    },
  );
}

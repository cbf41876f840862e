import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { runExec } from "@aido/sdk";
import type { CoreAido } from "../../src/core/core-aido.ts";
import { type AidoUnderTest, openPlace } from "../contract/aido-contract.ts";

export interface HistoryBed extends AsyncDisposable {
  /** Aido as it is open now. */
  readonly aido: CoreAido;
  readonly id: string;
  /** The repository on the host. */
  readonly gitDir: string;
  /** Runs a shell command to its end; its exec's id and output. */
  sh(script: string, options?: { history?: boolean; id?: string }): Promise<{ id: string; out: string }>;
  /** Closes Aido and opens it again, as a new process would. */
  reopen(): Promise<void>;
  /** Another Aido on the same data. */
  open(): Promise<CoreAido>;
  /** What git itself says of the repository. */
  git(...args: string[]): string;
}

/** A sandbox with history on a real driver. */
export async function makeHistoryBed(under: AidoUnderTest, options: object = {}): Promise<HistoryBed> {
  const place = openPlace(under);
  try {
    let aido = await place.open();
    const { id } = await aido.sandboxes.create({ history: true, ttlMs: 600_000, ...options });
    const gitDir = join(place.root, "sandboxes", id, "history.git");
    return {
      get aido() {
        return aido;
      },
      id,
      gitDir,
      open: place.open,
      sh: (script, extra) => shell(aido, id, script, extra),
      reopen: async () => {
        await aido.close();
        aido = await place.open();
      },
      git: (...args) =>
        execFileSync("git", ["--git-dir", gitDir, ...args], {
          encoding: "latin1",
          maxBuffer: 1024 * 1024 * 1024,
          stdio: ["ignore", "pipe", "pipe"],
        }),
      [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
    };
  } catch (thrown) {
    await place[Symbol.asyncDispose]();
    throw thrown;
  }
}

export async function shell(
  aido: CoreAido,
  sandbox: string,
  script: string,
  options: { history?: boolean; id?: string } = {},
): Promise<{ id: string; out: string }> {
  const done = await runExec(aido.execs, sandbox, { argv: ["sh", "-c", script], ...options });
  const out = Buffer.from(done.stdout).toString("utf8");
  if (done.info.exitCode !== 0) {
    throw new Error(`${script}\nended with ${done.info.exitCode}: ${Buffer.from(done.stderr)}`);
  }
  return { id: done.info.id, out };
}

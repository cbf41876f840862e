import { constants, readdirSync, rmSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import { writeJson } from "../../run/write-atomically.ts";
import { checkSchema } from "./check-schema.ts";
import { FileLock } from "./file-lock.ts";
import { parseState } from "./parse-state.ts";
import { StateDirectory } from "./state-directory.ts";
import type { SwarmState } from "./swarm-state.ts";
import { SWARM_STATE_SCHEMA } from "./swarm-state-schema.ts";

const STATE = "swarm-state.json";
const LOCK = ".state.lock";
/** What a process that was killed while it wrote left behind. */
const TEMPORARY = /^swarm-state\.json\.[0-9a-f]{12}\.tmp$/;
const LOCK_WAIT_MS = 30_000;
/** Thousands of workers; more is not a state but something else. */
const MOST_BYTES = 16 * 1024 * 1024;

export interface SwarmStateFileOptions {
  /** The directory that holds `.aimi`. */
  project: string;
  lockWaitMs?: number | undefined;
  signal?: AbortSignal | undefined;
  /**
   * Compares the state with the containers that there are, and answers with what is true: the same object when nothing differs.
   * Asked before every state that is shown, with the lock held.
   */
  reconcile?: ((state: SwarmState) => Promise<SwarmState>) | undefined;
}

/**
 * The state of a project's swarm, `.aimi/swarm-state.json`. Whoever changes it, aido or another tool, holds
 * `.aimi/.state.lock` from reading to writing; whoever only reads needs no lock, because a change is one rename.
 */
export class SwarmStateFile {
  readonly #options: SwarmStateFileOptions;

  constructor(options: SwarmStateFileOptions) {
    this.#options = options;
  }

  /** The state to show. */
  async read(): Promise<SwarmState> {
    const { reconcile } = this.#options;
    if (reconcile !== undefined) return await this.update(reconcile);
    await using directory = await this.#open();
    return await this.#load(directory);
  }

  /** What `change` makes of the state is written, unless it is the same object. All or nothing, one at a time. */
  async update(change: (state: SwarmState) => SwarmState | Promise<SwarmState>): Promise<SwarmState> {
    await using directory = await this.#open();
    await using _lock = await this.#lock(directory);
    const before = await this.#load(directory);
    const after = await change(before);
    if (after !== before) await save(directory, after);
    return after;
  }

  /** As `update`, where there may be no state yet. */
  async replace(
    make: (before: SwarmState | undefined) => SwarmState | Promise<SwarmState>,
  ): Promise<SwarmState> {
    await using directory = await StateDirectory.make(this.#options.project);
    await using _lock = await this.#lock(directory);
    const after = await make(await this.#find(directory));
    await save(directory, after);
    return after;
  }

  async #open(): Promise<StateDirectory> {
    const directory = await StateDirectory.open(this.#options.project);
    if (directory === undefined) throw this.#noSwarm();
    return directory;
  }

  async #lock(directory: StateDirectory): Promise<FileLock> {
    return await FileLock.take(directory.path(LOCK), {
      shown: this.#shown(LOCK),
      waitMs: this.#options.lockWaitMs ?? LOCK_WAIT_MS,
      signal: this.#options.signal,
    });
  }

  async #load(directory: StateDirectory): Promise<SwarmState> {
    const state = await this.#find(directory);
    if (state === undefined) throw this.#noSwarm();
    return state;
  }

  async #find(directory: StateDirectory): Promise<SwarmState | undefined> {
    const shown = this.#shown(STATE);
    const handle = await openState(directory.path(STATE), shown);
    if (handle === undefined) return undefined;
    try {
      const stats = await handle.stat();
      if (!stats.isFile() || stats.size > MOST_BYTES) throw notPlain(shown);
      return parseState(await handle.readFile(), shown);
    } finally {
      await handle.close();
    }
  }

  #shown(name: string): string {
    return join(this.#options.project, ".aimi", name);
  }

  #noSwarm(): AidoError {
    return new AidoError("SWARM_NOT_FOUND", `No swarm in ${this.#options.project}`, {
      hint: "Start one with `aido swarm-init`, or give the project's directory with --dir.",
    });
  }
}

async function openState(path: string, shown: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    if (code === "ELOOP" || code === "ENXIO") throw notPlain(shown, thrown);
    throw new AidoError("INVALID_PATH", `Cannot read ${shown}: ${code ?? message}`, { cause: thrown });
  }
}

function notPlain(shown: string, cause?: unknown): AidoError {
  return new AidoError(
    "INVALID_PATH",
    `${shown} is not a plain file of up to 16 MiB; links are not followed`,
    {
      hint: "Move it away and start anew with `aido swarm-init`.",
      cause,
    },
  );
}

/** With the lock held, so every temporary file is one of a process that is no more. */
async function save(directory: StateDirectory, state: SwarmState): Promise<void> {
  const [problem] = checkSchema(state, SWARM_STATE_SCHEMA);
  if (problem !== undefined) {
    throw new AidoError(
      "INTERNAL_SERVER_ERROR",
      `A swarm's state would be wrong: ${problem.field} ${problem.message}`,
    );
  }
  for (const name of readdirSync(directory.path("."))) {
    if (TEMPORARY.test(name)) rmSync(directory.path(name), { force: true });
  }
  try {
    await writeJson(directory.path(STATE), state, { durable: true });
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException;
    throw new AidoError(
      code === "ENOSPC" || code === "EDQUOT" ? "DISK_FULL" : "FILE_CREATION_FAILED",
      `Cannot write the swarm's state: ${code ?? message}`,
      { hint: "The state is as it was before.", cause: thrown },
    );
  }
}

import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { AidoError } from "@aido/sdk/protocol";
import { scanRecords } from "../history/scan-records.ts";
import type { Supervisor } from "../supervisor/supervisor.ts";

const AT_ONCE = 16;
const DIRECTORY_MODE = "755";
const END_LIMIT_MS = 5000;
const END_POLL_MS = 10;

/** Trees of files inside a sandbox, worked on by its supervisor as the sandbox's user; no path is opened on the host. */
export class SandboxTrees {
  readonly #supervisor: Supervisor;
  readonly #signal: AbortSignal | undefined;

  constructor(supervisor: Supervisor, signal: AbortSignal | undefined) {
    this.#supervisor = supervisor;
    this.#signal = signal;
  }

  /** Raises when anything beneath it could not be read: an archive that lacks files is no snapshot. */
  async *pack(root: string): AsyncGenerator<Uint8Array, void, undefined> {
    const run = this.#supervisor.tool(["tar", root, "."], { signal: this.#signal });
    yield* run.stdout;
    await run.done;
  }

  async unpack(root: string, path: string, archive: AsyncIterable<Uint8Array>): Promise<void> {
    const id = `tool-untar-${randomBytes(9).toString("base64url")}`;
    try {
      await this.#supervisor.tool(["untar", root, path], { stdin: archive, signal: this.#signal, id }).done;
    } catch (thrown) {
      await this.#ended(id);
      throw thrown;
    }
  }

  /** One that was given up still writes until it is killed, and what it writes would come back after it was removed. */
  async #ended(id: string): Promise<void> {
    const signal = AbortSignal.timeout(END_LIMIT_MS);
    const isAtWork = async () =>
      (await this.#supervisor.list(signal)).some((exec) => exec.id === id && !exec.ended);
    try {
      while (await isAtWork()) await sleep(END_POLL_MS, undefined, { signal });
    } catch {
      // Nobody is there to ask, or it takes too long: the removal that follows tells what is wrong.
    }
  }

  /** Also when the work was cancelled: what was staged must go. */
  async remove(root: string, path: string): Promise<void> {
    await this.#supervisor.tool(["remove", root, path]).done;
  }

  /**
   * Puts what lies in `stage/new` in the place of all else beneath the root, and removes the stage. What was there is in
   * `stage/old` meanwhile and is moved back when a step fails; a process that is killed leaves it there.
   */
  async replace(root: string, stage: string): Promise<void> {
    const before = (await this.#names(root, ".")).filter((name) => name !== stage);
    const after = await this.#names(root, `${stage}/new`);
    const moved: Move[] = [];
    const move = async (from: string, to: string) => {
      await this.#supervisor.tool(["move", root, from, to]).done;
      moved.push({ from, to });
    };
    try {
      await this.#supervisor.tool(["mkdir", root, `${stage}/old`, DIRECTORY_MODE]).done;
      await eachOf(before.filter(isText), (name) => move(toText(name), `${stage}/old/${toText(name)}`));
      await eachOf(after.filter(isText), (name) => move(`${stage}/new/${toText(name)}`, toText(name)));
      await this.#replaceOdd(root, stage, { before, after });
    } catch (thrown) {
      await this.#moveBack(root, stage, moved);
      await this.remove(root, stage);
      throw thrown;
    }
    await this.remove(root, stage);
  }

  /** Names that are no text cannot be arguments of a tool; they travel as bytes through its pipes. New ones come first. */
  async #replaceOdd(
    root: string,
    stage: string,
    { before, after }: { before: readonly string[]; after: readonly string[] },
  ): Promise<void> {
    if (!after.every(isText)) {
      const rest = this.#supervisor.tool(["tar", root, `${stage}/new`]);
      await this.unpack(root, ".", rest.stdout);
      await rest.done;
    }
    const gone = before.filter((name) => !isText(name) && !after.includes(name));
    if (gone.length > 0) await this.#prune(root, gone);
  }

  async #moveBack(root: string, stage: string, moved: readonly Move[]): Promise<void> {
    try {
      for (const { from, to } of moved.toReversed())
        await this.#supervisor.tool(["move", root, to, from]).done;
    } catch (cause) {
      throw new AidoError("FILE_CREATION_FAILED", "The files could be neither replaced nor moved back", {
        hint: `What was there before lies in ${stage}/old in the working directory.`,
        cause,
      });
    }
  }

  async #prune(root: string, names: readonly string[]): Promise<void> {
    const stdin = Buffer.from(names.map((name) => `${name}\0`).join(""), "latin1");
    await this.#supervisor.tool(["prune", root, "."], { stdin }).done;
  }

  /** Bytes as latin1 text. */
  async #names(root: string, path: string): Promise<readonly string[]> {
    const run = this.#supervisor.tool(["list", root, path, "0"]);
    const names: string[] = [];
    for await (const record of scanRecords(run.stdout)) names.push(record.path);
    await run.done;
    return names;
  }
}

interface Move {
  readonly from: string;
  readonly to: string;
}

async function eachOf(names: readonly string[], work: (name: string) => Promise<void>): Promise<void> {
  for (let at = 0; at < names.length; at += AT_ONCE) {
    const results = await Promise.allSettled(names.slice(at, at + AT_ONCE).map(work));
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }
}

function toText(name: string): string {
  return Buffer.from(name, "latin1").toString("utf8");
}

function isText(name: string): boolean {
  return Buffer.from(toText(name), "utf8").toString("latin1") === name;
}

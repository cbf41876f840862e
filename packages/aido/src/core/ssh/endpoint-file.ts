import { readFile, rm } from "node:fs/promises";
import type { Presence } from "../process-presence.ts";
import { writeAtomically } from "../run/write-atomically.ts";

/** Where this machine's server listens for SSH. */
export interface SshEndpoint {
  host: string;
  port: number;
  /** Type and key. */
  hostKey: string;
}

/** How other processes on the same data directory learn where the server listens. */
export class EndpointFile {
  readonly #path: string;
  readonly #presence: Presence;

  constructor(path: string, presence: Presence) {
    this.#path = path;
    this.#presence = presence;
  }

  /** Undefined when no server listens, also when the one that did was killed. */
  async read(): Promise<SshEndpoint | undefined> {
    const text = await readFile(this.#path, "utf8").catch((thrown: NodeJS.ErrnoException) => {
      if (thrown.code === "ENOENT") return undefined;
      throw thrown;
    });
    if (text === undefined) return undefined;
    const { holder, ...endpoint } = JSON.parse(text) as SshEndpoint & { holder: string };
    return (await this.#presence.isGone(holder)) ? undefined : endpoint;
  }

  async write(endpoint: SshEndpoint): Promise<void> {
    await this.#presence.appear();
    await writeAtomically(this.#path, `${JSON.stringify({ ...endpoint, holder: this.#presence.self })}\n`);
  }

  async remove(): Promise<void> {
    await rm(this.#path, { force: true });
  }
}

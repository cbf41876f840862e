import { readdir } from "node:fs/promises";
import type { WorkspaceFilter, WorkspaceInfo, Workspaces } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import { ANONYMOUS } from "../access/owner-label.ts";
import { DOUBT_MS } from "../clock-jumps.ts";
import { removeTree } from "../sandbox/remove-tree.ts";
import { inUse, type WorkspaceDeps, WorkspaceHolds } from "./workspace-holds.ts";
import type { WorkspaceRecord } from "./workspace-store.ts";

const PAGE = 100;

/** Directories that outlive the sandboxes they are mounted in. What they hold is hostile, as all that sandboxes write. */
export class WorkspaceService implements Workspaces {
  readonly #deps: WorkspaceDeps;
  readonly #holds: WorkspaceHolds;
  readonly #ttlMs: number;

  /** `ttlMs` is how long one is kept that no sandbox has; 0 means for ever. */
  constructor(deps: WorkspaceDeps, { ttlMs = 0 }: { ttlMs?: number | undefined } = {}) {
    this.#deps = deps;
    this.#holds = new WorkspaceHolds(deps);
    this.#ttlMs = ttlMs;
  }

  async list({ owner = ANONYMOUS, all = false }: WorkspaceFilter = {}): Promise<readonly WorkspaceInfo[]> {
    const records = await this.#deps.store.workspaces.list(all ? undefined : owner);
    return await Promise.all(records.map((record) => this.#info(record)));
  }

  async remove(name: string, { owner = ANONYMOUS }: { owner?: string | undefined } = {}): Promise<void> {
    const known = await this.#deps.store.workspaces.get(owner, name);
    if (known === undefined) {
      throw new AidoError(
        "RESOURCE_NOT_FOUND",
        `There is no workspace ${JSON.stringify(name.slice(0, 100))}`,
        {
          hint: "`aido workspace list` shows them.",
        },
      );
    }
    if ((await this.#holds.isHeld(known)) || !(await this.#destroy(known))) throw inUse(known);
  }

  /** Removes those that no sandbox has had for longer than they are kept. */
  async expire(): Promise<void> {
    if (this.#ttlMs === 0 || this.#deps.jumps.within(DOUBT_MS)) return;
    const since = new Date(this.#deps.clock.now().getTime() - this.#ttlMs);
    for (let after: WorkspaceRecord | undefined; ; ) {
      const page = await this.#deps.store.workspaces.unusedSince(since, PAGE, after);
      for (const record of page) {
        if (!(await this.#holds.isHeld(record))) await this.#destroy(record);
      }
      after = page.at(-1);
      if (page.length < PAGE) return;
    }
  }

  /** Finishes removals that a killed process has begun: a directory is made after its record and goes after it. */
  async tidy(): Promise<void> {
    const { dataDir, store } = this.#deps;
    const names = await readdir(dataDir.workspaces).catch(() => []);
    if (names.length === 0) return;
    const known = new Set((await store.workspaces.list()).map(({ id }) => id));
    for (const name of names) if (!known.has(name)) await removeTree(`${dataDir.workspaces}/${name}`);
  }

  /** The record first: whoever asks for the name from then on gets an empty one. */
  async #destroy({ id, sandboxId }: WorkspaceRecord): Promise<boolean> {
    if (!(await this.#deps.store.workspaces.remove(id, sandboxId))) return false;
    await removeTree(this.#deps.dataDir.workspace(id));
    return true;
  }

  async #info(record: WorkspaceRecord): Promise<WorkspaceInfo> {
    const { name, owner, createdAt, lastUsedAt } = record;
    const isHeld = await this.#holds.isHeld(record);
    return {
      ...{ name, owner, createdAt, lastUsedAt },
      sandboxId: isHeld ? record.sandboxId : undefined,
      expiresAt: isHeld || this.#ttlMs === 0 ? undefined : new Date(lastUsedAt.getTime() + this.#ttlMs),
    };
  }
}

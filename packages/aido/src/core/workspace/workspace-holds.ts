import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { AidoError } from "@aido/sdk/protocol";
import { ownerOf } from "../access/owner-label.ts";
import { SandboxClaims } from "../sandbox/sandbox-claims.ts";
import type { SandboxDeps } from "../sandbox/sandbox-deps.ts";
import type { SandboxRecord } from "../store/store.ts";
import type { WorkspaceRecord } from "./workspace-store.ts";

export type WorkspaceDeps = Pick<SandboxDeps, "store" | "dataDir" | "processes" | "clock" | "jumps">;

/** The name of the workspace that a sandbox has. */
export const WORKSPACE_LABEL = "dev.aido.workspace";

/** Who has which workspace: a sandbox has it from before its first record until it is destroyed. */
export class WorkspaceHolds {
  readonly #deps: WorkspaceDeps;
  readonly #most: number;

  constructor(deps: WorkspaceDeps, most = 0) {
    this.#deps = deps;
    this.#most = most;
  }

  /**
   * The record with the workspace at its workdir; a new one when its owner has none of this name. Whoever calls holds
   * the sandbox's claim. Raises WORKSPACE_IN_USE and QUOTA_EXCEEDED.
   */
  async mount(record: SandboxRecord, name: string): Promise<SandboxRecord> {
    const id = await this.#hold(ownerOf(record.labels), name, record.id);
    const source = this.#deps.dataDir.workspace(id);
    await mkdir(source, { recursive: true, mode: 0o700 });
    return {
      ...record,
      labels: { ...record.labels, [WORKSPACE_LABEL]: name },
      mounts: [...record.mounts, { source, target: record.workdir, readOnly: false }],
    };
  }

  /** After a create that came to nothing; a sandbox of the same id that has another workspace keeps it. */
  async giveBack({ id, labels }: SandboxRecord): Promise<void> {
    const { store, clock } = this.#deps;
    const held = await store.workspaces.get(ownerOf(labels), labels[WORKSPACE_LABEL] ?? "");
    if (held !== undefined) await store.workspaces.release(id, clock.now(), held.id);
  }

  /** Whether the sandbox that took it last is there, or is being made. */
  async isHeld({ sandboxId }: WorkspaceRecord): Promise<boolean> {
    if (sandboxId === undefined) return false;
    const { store } = this.#deps;
    const record = await store.sandboxes.get(sandboxId);
    if (record !== undefined) return record.state !== "deleted";
    const claim = await store.claims.get(sandboxId);
    return claim !== undefined && !new SandboxClaims(this.#deps).isAbandoned(claim);
  }

  async #hold(owner: string, name: string, sandboxId: string): Promise<string> {
    const { workspaces } = this.#deps.store;
    for (;;) {
      const now = this.#deps.clock.now();
      const known = await workspaces.get(owner, name);
      if (known === undefined) {
        const id = randomBytes(16).toString("hex");
        const made = { id, owner, name, sandboxId, createdAt: now, lastUsedAt: now };
        if (await workspaces.insert(made, this.#most)) return id;
      } else {
        if (await this.isHeld(known)) throw inUse(known);
        if (await workspaces.take(known.id, known.sandboxId, sandboxId, now)) return known.id;
      }
    }
  }
}

export function inUse({ name, sandboxId }: WorkspaceRecord): AidoError {
  return new AidoError("WORKSPACE_IN_USE", `Sandbox ${sandboxId} has the workspace ${name}`, {
    hint: `It is free when that sandbox is destroyed: \`aido rm ${sandboxId}\`.`,
    details: { workspace: name, sandboxId },
  });
}

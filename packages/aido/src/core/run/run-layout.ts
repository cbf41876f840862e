import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { DataDir } from "../data-dir.ts";
import type { Mount } from "../driver/driver.ts";
import { removeTree } from "../sandbox/remove-tree.ts";

/** The files of one run. All but `work` and `mountedOutputs` are out of the sandbox's reach or read-only there. */
export class RunLayout {
  readonly root: string;
  readonly execs: string;
  readonly mountedOutputs: string;

  constructor(dataDir: DataDir, sandboxId: string) {
    this.root = dataDir.sandbox(sandboxId);
    this.execs = dataDir.execs(sandboxId);
    this.mountedOutputs = join(dataDir.mounts(sandboxId), "outputs");
  }

  get specText(): string {
    return join(this.root, "sandbox.yaml");
  }

  /** The spec with its units converted, so that reading it needs no YAML. */
  get spec(): string {
    return join(this.root, "spec.json");
  }

  get record(): string {
    return join(this.root, "run.json");
  }

  get owners(): string {
    return join(this.root, "owners");
  }

  get inputs(): string {
    return join(this.root, "inputs");
  }

  get work(): string {
    return join(this.root, "work");
  }

  get tasks(): string {
    return join(this.root, "task");
  }

  get outputs(): string {
    return join(this.root, "outputs");
  }

  get summary(): string {
    return join(this.outputs, "summary.json");
  }

  get mounts(): readonly Mount[] {
    return [
      { source: this.inputs, target: "/inputs", readOnly: true },
      { source: this.tasks, target: "/task", readOnly: true },
      { source: this.work, target: "/work", readOnly: false },
      { source: this.mountedOutputs, target: "/outputs", readOnly: false },
    ];
  }

  make(): void {
    for (const path of [this.inputs, this.tasks, this.work, this.mountedOutputs, this.outputs]) {
      makeReadable(path);
    }
  }

  /** Each run answers for its own outputs. Only while no container runs: nothing may be writing there. */
  async emptyOutputs(): Promise<void> {
    await removeTree(this.mountedOutputs);
    makeReadable(this.mountedOutputs);
  }
}

/** Whatever the umask: the sandbox's user reads all of them, and is given those that it may write. */
function makeReadable(path: string): void {
  mkdirSync(path, { recursive: true });
  chmodSync(path, 0o755);
}

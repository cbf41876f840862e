import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * On which engine each sandbox is: an empty file for each, in a directory for each engine. Written before anything is
 * made there and removed when nothing is left, so that it is known while the engine does not answer, and to every process.
 */
export class EnginePlaces {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  put(address: string, sandboxId: string): void {
    mkdirSync(this.#directory(address), { recursive: true, mode: 0o700 });
    writeFileSync(join(this.#directory(address), sandboxId), "", { mode: 0o600 });
  }

  has(address: string, sandboxId: string): boolean {
    return existsSync(join(this.#directory(address), sandboxId));
  }

  remove(address: string, sandboxId: string): void {
    rmSync(join(this.#directory(address), sandboxId), { force: true });
  }

  of(address: string): readonly string[] {
    return names(this.#directory(address));
  }

  /** Sandboxes on engines that are none of these: their addresses are no longer in the settings. */
  elsewhere(addresses: readonly string[]): readonly string[] {
    const known = new Set(addresses.map(keyOf));
    return names(this.#root)
      .filter((key) => !known.has(key))
      .flatMap((key) => names(join(this.#root, key)));
  }

  /** As after `elsewhere`. */
  forgetElsewhere(addresses: readonly string[], sandboxId: string): void {
    const known = new Set(addresses.map(keyOf));
    for (const key of names(this.#root)) {
      if (!known.has(key)) rmSync(join(this.#root, key, sandboxId), { force: true });
    }
  }

  #directory(address: string): string {
    return join(this.#root, keyOf(address));
  }
}

function keyOf(address: string): string {
  return createHash("sha256").update(address).digest("hex").slice(0, 16);
}

function names(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}

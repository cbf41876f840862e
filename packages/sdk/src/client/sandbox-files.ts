import type { Files } from "../aido.ts";
import type { FileEvent, FileInfo } from "../protocol/index.ts";
import { concat } from "./bytes.ts";

/** Files of one sandbox, with text for convenience. */
export class SandboxFiles {
  readonly #sandbox: string;
  readonly #files: Files;

  constructor(sandbox: string, files: Files) {
    this.#sandbox = sandbox;
    this.#files = files;
  }

  async read(path: string): Promise<Uint8Array> {
    return concat(this.#files.read(this.#sandbox, path));
  }

  async readText(path: string): Promise<string> {
    return new TextDecoder().decode(await this.read(path));
  }

  write(path: string, content: string | Uint8Array, options: { mode?: number } = {}): Promise<void> {
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    return this.#files.write(this.#sandbox, path, bytes, options);
  }

  list(path = ".", options: { recursive?: boolean } = {}): Promise<readonly FileInfo[]> {
    return this.#files.list(this.#sandbox, path, options);
  }

  stat(path: string): Promise<FileInfo> {
    return this.#files.stat(this.#sandbox, path);
  }

  move(from: string, to: string): Promise<void> {
    return this.#files.move(this.#sandbox, from, to);
  }

  remove(path: string): Promise<void> {
    return this.#files.remove(this.#sandbox, path);
  }

  mkdir(path: string): Promise<void> {
    return this.#files.mkdir(this.#sandbox, path);
  }

  watch(path = ".", signal?: AbortSignal): AsyncIterable<FileEvent> {
    return this.#files.watch(this.#sandbox, path, signal);
  }
}

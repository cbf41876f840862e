import type { Aido } from "@aido/sdk";
import { AidoError, type ExecInfo } from "@aido/sdk/protocol";

/** Of one sandbox's commands together: what they do not read stays in this process until they end. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/** Standard input that came with its request and is given beside it: a command may read as late as it likes, or never. */
export class StdinFeeds {
  readonly #aido: Aido;
  readonly #waiting = new Map<string, number>();

  constructor(aido: Aido) {
    this.#aido = aido;
  }

  /** Before the command starts. Raises QUOTA_EXCEEDED when its sandbox's commands leave too much unread already. */
  admit(sandboxId: string): void {
    if ((this.#waiting.get(sandboxId) ?? 0) < MAX_WAITING_BYTES) return;
    throw new AidoError(
      "QUOTA_EXCEEDED",
      "Commands of this sandbox have not read the input they were given",
      {
        hint: "End those that do not read, or write the input to a file of the sandbox.",
        details: { limit: MAX_WAITING_BYTES },
      },
    );
  }

  /** Ends when all is read, or with the command: one that ends without reading its input has not failed. */
  begin(exec: ExecInfo, input: Uint8Array): void {
    this.#count(exec.sandboxId, input.byteLength);
    this.#give(exec, input)
      .catch(() => undefined)
      .finally(() => this.#count(exec.sandboxId, -input.byteLength));
  }

  async #give({ sandboxId, id }: ExecInfo, input: Uint8Array): Promise<void> {
    await this.#aido.execs.writeStdin(sandboxId, id, input);
    await this.#aido.execs.closeStdin(sandboxId, id);
  }

  #count(sandboxId: string, bytes: number): void {
    const now = (this.#waiting.get(sandboxId) ?? 0) + bytes;
    if (now > 0) this.#waiting.set(sandboxId, now);
    else this.#waiting.delete(sandboxId);
  }
}

import type { Files } from "../aido.ts";
import type { ErrorBody, FileEvent, FileInfo } from "../protocol/index.ts";
import type { FileReply } from "../schemas/index.ts";
import { bodyOf, chunksOf } from "./bytes.ts";
import { toFileInfo } from "./from-wire.ts";
import { errorFromBody } from "./server-error.ts";
import { serverEvents } from "./server-events.ts";
import type { Transport } from "./transport.ts";

const at = (sandbox: string, verb = ""): string => `/api/sandbox/${encodeURIComponent(sandbox)}/files${verb}`;

export class HttpFiles implements Files {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async *read(sandbox: string, path: string, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const response = await this.#transport.send(at(sandbox), { query: { path }, signal });
    yield* chunksOf(response, this.#transport.url, signal);
  }

  async write(
    sandbox: string,
    path: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    options: { mode?: number; signal?: AbortSignal } = {},
  ): Promise<void> {
    const query = { path, mode: options.mode?.toString(8).padStart(3, "0") };
    await this.#transport.json(at(sandbox), {
      method: "PUT",
      query,
      body: await bodyOf(content),
      slow: true,
      signal: options.signal,
    });
  }

  async stat(sandbox: string, path: string, signal?: AbortSignal): Promise<FileInfo> {
    const call = { query: { path }, repeatable: true, signal };
    return toFileInfo(await this.#transport.json<FileReply>(at(sandbox, "/stat"), call));
  }

  async list(
    sandbox: string,
    path: string,
    options: { recursive?: boolean; signal?: AbortSignal } = {},
  ): Promise<readonly FileInfo[]> {
    const query = { path, recursive: options.recursive };
    const call = { query, repeatable: true, signal: options.signal };
    const reply = await this.#transport.json<{ files: FileReply[] }>(at(sandbox, "/list"), call);
    return reply.files.map(toFileInfo);
  }

  async move(sandbox: string, from: string, to: string, signal?: AbortSignal): Promise<void> {
    await this.#transport.json(at(sandbox, "/move"), { method: "POST", json: { from, to }, signal });
  }

  async remove(sandbox: string, path: string, signal?: AbortSignal): Promise<void> {
    await this.#transport.json(at(sandbox), { method: "DELETE", query: { path }, signal });
  }

  async mkdir(sandbox: string, path: string, signal?: AbortSignal): Promise<void> {
    await this.#transport.json(at(sandbox, "/mkdir"), { method: "POST", json: { path }, signal });
  }

  async *watch(sandbox: string, path: string, signal?: AbortSignal): AsyncGenerator<FileEvent> {
    const response = await this.#transport.send(at(sandbox, "/watch"), { query: { path }, signal });
    for await (const { event, data } of serverEvents(response, this.#transport.url, signal)) {
      if (event === "error") throw errorFromBody(data as ErrorBody, 500);
      if (event === "change") yield data as FileEvent;
    }
  }

  async *tarOut(sandbox: string, path: string, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const response = await this.#transport.send(at(sandbox, "/tar"), { query: { path }, signal });
    yield* chunksOf(response, this.#transport.url, signal);
  }

  async tarIn(
    sandbox: string,
    path: string,
    archive: AsyncIterable<Uint8Array>,
    signal?: AbortSignal,
  ): Promise<void> {
    const call = { method: "PUT" as const, query: { path }, body: await bodyOf(archive), slow: true, signal };
    await this.#transport.json(at(sandbox, "/tar"), call);
  }
}

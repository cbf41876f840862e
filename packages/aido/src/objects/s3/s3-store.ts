import { createHash } from "node:crypto";
import { AidoError } from "@aido/sdk/protocol";
import type { Clock } from "../../core/clock.ts";
import { checkKey } from "../../core/object-store/object-key.ts";
import type {
  ObjectInfo,
  ObjectOptions,
  ObjectStore,
  StoredObject,
} from "../../core/object-store/object-store.ts";
import { HashedBody } from "../wire/hashed-body.ts";
import { HttpSender } from "../wire/http-sender.ts";
import { retry } from "../wire/retry.ts";
import { MultipartUpload, unquoted } from "./multipart-upload.ts";
import { cutIntoParts } from "./part-buffer.ts";
import { readObject } from "./read-object.ts";
import { S3Client, type S3Settings } from "./s3-client.ts";
import { s3Error } from "./s3-error.ts";

export interface S3StoreDeps {
  readonly settings: S3Settings;
  readonly clock: Clock;
  readonly sender?: HttpSender | undefined;
}

/** Objects of a bucket beneath a prefix. The endpoint is the operator's own choice and may be anywhere. */
export class S3Store implements ObjectStore {
  readonly #client: S3Client;
  readonly #clock: Clock;
  readonly #bucket: string;
  readonly #prefix: string;

  constructor({ bucket, prefix }: { bucket: string; prefix: string }, deps: S3StoreDeps) {
    const sender = deps.sender ?? new HttpSender({ isTrusted: true });
    this.#client = new S3Client(bucket, { ...deps, sender });
    this.#clock = deps.clock;
    this.#bucket = bucket;
    this.#prefix = prefix === "" ? "" : `${prefix}/`;
  }

  async put(
    name: string,
    body: AsyncIterable<Uint8Array>,
    { signal }: ObjectOptions = {},
  ): Promise<StoredObject> {
    const key = this.#key(name);
    const hashed = new HashedBody();
    const parts = cutIntoParts(hashed.pass(body, signal))[Symbol.asyncIterator]();
    try {
      const first = await parts.next();
      const second = first.done === true ? first : await parts.next();
      const etag =
        second.done === true
          ? await this.#putWhole(key, first.value ?? new Uint8Array(), signal)
          : await this.#putParts(key, [first.value as Uint8Array, second.value], parts, signal);
      const stored = hashed.end();
      await this.#verify(key, stored.bytes, etag, signal);
      return stored;
    } finally {
      await parts.return?.(undefined);
    }
  }

  async get(name: string, { signal }: ObjectOptions = {}): Promise<AsyncIterable<Uint8Array>> {
    const key = this.#key(name);
    return await readObject({
      client: this.#client,
      clock: this.#clock,
      key,
      where: this.#where(key),
      signal,
    });
  }

  async head(name: string, { signal }: ObjectOptions = {}): Promise<ObjectInfo | undefined> {
    const found = await this.#head(this.#key(name), signal);
    return found === undefined ? undefined : { bytes: found.bytes };
  }

  async remove(name: string, { signal }: ObjectOptions = {}): Promise<void> {
    const key = this.#key(name);
    await retry(this.#clock, signal, async () => {
      const reply = await this.#client.send({ method: "DELETE", key, signal });
      if (reply.status !== 404 && reply.status >= 300)
        throw await s3Error(reply, `Removing ${this.#where(key)}`);
      reply.discard();
    });
  }

  async #putWhole(key: string, body: Uint8Array, signal: AbortSignal | undefined): Promise<string> {
    const digest = createHash("md5").update(body).digest();
    const headers = { "content-md5": digest.toString("base64"), "content-type": "application/octet-stream" };
    await retry(this.#clock, signal, async () => {
      const reply = await this.#client.send({ method: "PUT", key, headers, body, signal });
      if (reply.status !== 200) throw await s3Error(reply, `Storing ${this.#where(key)}`);
      reply.discard();
    });
    return digest.toString("hex");
  }

  async #putParts(
    key: string,
    begun: readonly Uint8Array[],
    rest: AsyncIterator<Uint8Array>,
    signal: AbortSignal | undefined,
  ): Promise<string> {
    const upload = await MultipartUpload.begin({ client: this.#client, clock: this.#clock, key, signal });
    try {
      for (const part of begun) await upload.add(part);
      for (let next = await rest.next(); next.done !== true; next = await rest.next())
        await upload.add(next.value);
      await upload.complete();
    } catch (thrown) {
      await upload.abort();
      throw thrown;
    }
    return upload.etag;
  }

  /** Asks the server what it has: a put that a proxy or a full disk cut short is no put. */
  async #verify(key: string, bytes: number, etag: string, signal: AbortSignal | undefined): Promise<void> {
    const found = await this.#head(key, signal);
    // Not every server names an object by the hash that S3 would; the size is told by all.
    const isComparable = found?.isOpaque === false && shape(found.etag) === shape(etag);
    const isSame = !isComparable || found.etag === etag;
    if (found?.bytes === bytes && isSame) return;
    throw new AidoError("OBJECT_BROKEN", `${this.#where(key)} is not what was sent to the S3 server`, {
      hint: "Another process may have written it at the same time. Try again.",
      details: { sentBytes: bytes, storedBytes: found?.bytes },
    });
  }

  #head(key: string, signal: AbortSignal | undefined) {
    return retry(this.#clock, signal, async () => {
      const reply = await this.#client.send({ method: "HEAD", key, signal });
      reply.discard();
      if (reply.status === 404) return undefined;
      if (reply.status !== 200) throw await s3Error(reply, `Looking at ${this.#where(key)}`);
      const isOpaque = reply.headers["x-amz-server-side-encryption"] === "aws:kms";
      return { bytes: Number(reply.headers["content-length"]), etag: unquoted(reply.headers.etag), isOpaque };
    });
  }

  #key(name: string): string {
    return this.#prefix + checkKey(name);
  }

  #where(key: string): string {
    return `s3://${this.#bucket}/${key}`;
  }
}

/** `hash-parts`, a plain hash, or something else. */
function shape(etag: string | undefined): string {
  return (etag ?? "").replace(/^[0-9a-f]{32}/, "hash").replace(/\d+$/, "");
}

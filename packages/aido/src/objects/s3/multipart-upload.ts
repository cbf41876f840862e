import { createHash } from "node:crypto";
import { AidoError } from "@aido/sdk/protocol";
import type { Clock } from "../../core/clock.ts";
import { retry } from "../wire/retry.ts";
import { xmlField } from "../wire/xml-field.ts";
import type { S3Client } from "./s3-client.ts";
import { s3Error, toS3Error } from "./s3-error.ts";

/** The server's limit on the number of parts. */
const MAX_PARTS = 10_000;

interface Part {
  readonly number: number;
  /** As the server named it; sent back as it came. */
  readonly etag: string;
  readonly md5: string;
}

export interface UploadDeps {
  readonly client: S3Client;
  readonly clock: Clock;
  readonly key: string;
  readonly signal: AbortSignal | undefined;
}

/** An object that is put together of parts; it is there when `complete` resolves and not before. */
export class MultipartUpload {
  readonly #deps: UploadDeps;
  readonly #id: string;
  readonly #parts: Part[] = [];

  private constructor(deps: UploadDeps, id: string) {
    this.#deps = deps;
    this.#id = id;
  }

  static async begin(deps: UploadDeps): Promise<MultipartUpload> {
    const { client, key, signal } = deps;
    const id = await retry(deps.clock, signal, async () => {
      const reply = await client.send({ method: "POST", key, query: { uploads: "" }, signal });
      if (reply.status !== 200) throw await s3Error(reply, "Beginning an upload");
      return xmlField(await reply.text(), "UploadId");
    });
    if (id === undefined) throw new AidoError("OBJECT_STORE_UNAVAILABLE", "The S3 server named no upload");
    return new MultipartUpload(deps, id);
  }

  async add(body: Uint8Array): Promise<void> {
    const { client, clock, key, signal } = this.#deps;
    const number = this.#parts.length + 1;
    if (number > MAX_PARTS)
      throw new AidoError("PAYLOAD_TOO_LARGE", "The object has more parts than S3 takes");
    const digest = createHash("md5").update(body).digest();
    const md5 = digest.toString("hex");
    const etag = await retry(clock, signal, async () => {
      const query = { partNumber: String(number), uploadId: this.#id };
      const headers = { "content-md5": digest.toString("base64") };
      const reply = await client.send({ method: "PUT", key, query, headers, body, signal });
      if (reply.status !== 200) throw await s3Error(reply, `Sending part ${number}`);
      const given = reply.headers.etag ?? "";
      const isPlain = reply.headers["x-amz-server-side-encryption"] !== "aws:kms";
      reply.discard();
      const stored = plainMd5(given);
      if (isPlain && stored !== undefined && stored !== md5) {
        throw new AidoError("OBJECT_STORE_UNAVAILABLE", `Part ${number} arrived damaged`);
      }
      return given;
    });
    this.#parts.push({ number, etag, md5 });
  }

  async complete(): Promise<void> {
    const { client, clock, key, signal } = this.#deps;
    const xml = this.#parts
      .map(
        ({ number, etag }) =>
          `<Part><PartNumber>${number}</PartNumber><ETag>${escapeXml(etag)}</ETag></Part>`,
      )
      .join("");
    const body = Buffer.from(`<CompleteMultipartUpload>${xml}</CompleteMultipartUpload>`);
    const headers = { "content-type": "application/xml" };
    await retry(clock, signal, async (attempt) => {
      const query = { uploadId: this.#id };
      const reply = await client.send({ method: "POST", key, query, headers, body, signal });
      const text = await reply.text();
      // The answer to the attempt before may have been lost on its way: then the upload is over, and the object is there.
      if (reply.status === 404 && attempt > 1 && (await this.#isThere())) return;
      // S3 may begin to answer before it is done, and fail afterwards.
      if (reply.status !== 200 || text.includes("<Error>")) {
        throw toS3Error(reply.status === 200 ? 503 : reply.status, text, "Completing an upload");
      }
    });
  }

  /** Lets go of the parts; never fails, because what made it necessary is what the user must hear. */
  async abort(): Promise<void> {
    const { client, clock, key } = this.#deps;
    const signal = AbortSignal.timeout(10_000);
    await retry(clock, signal, async () => {
      const reply = await client.send({ method: "DELETE", key, query: { uploadId: this.#id }, signal });
      if (reply.status >= 500) throw await s3Error(reply, "Ending an upload");
      reply.discard();
    }).catch(() => undefined);
  }

  /** The hash of a whole that was made of parts, as S3 counts it. */
  get etag(): string {
    const hash = createHash("md5");
    for (const { md5 } of this.#parts) hash.update(Buffer.from(md5, "hex"));
    return `${hash.digest("hex")}-${this.#parts.length}`;
  }

  async #isThere(): Promise<boolean> {
    const { client, key, signal } = this.#deps;
    const reply = await client.send({ method: "HEAD", key, signal });
    reply.discard();
    return reply.status === 200 && unquoted(reply.headers.etag) === this.etag;
  }
}

export function unquoted(etag: string | undefined): string | undefined {
  return etag?.replace(/^"|"$/g, "");
}

/** Undefined for names that are no hash of the content. */
function plainMd5(etag: string | undefined): string | undefined {
  const value = unquoted(etag);
  return value !== undefined && /^[0-9a-f]{32}$/.test(value) ? value : undefined;
}

function escapeXml(text: string): string {
  return text.replace(/[<>&]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

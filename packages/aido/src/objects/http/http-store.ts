import { AidoError } from "@aido/sdk/protocol";
import { printableAddress } from "../../core/object-store/object-address.ts";
import { checkKey, objectNotFound } from "../../core/object-store/object-key.ts";
import type {
  ObjectInfo,
  ObjectOptions,
  ObjectStore,
  StoredObject,
} from "../../core/object-store/object-store.ts";
import type { HttpReply, HttpRequest, HttpSender } from "../wire/http-sender.ts";
import { translate } from "../wire/http-sender.ts";
import { Spool } from "../wire/spool.ts";

/**
 * Objects behind PUT, GET, HEAD and DELETE, as addresses signed for one upload and plain web servers have them. A body is
 * gathered on the disk first: such servers want to know its length, and one that breaks off is never sent.
 */
export class HttpStore implements ObjectStore {
  readonly #base: URL;
  readonly #sender: HttpSender;
  readonly #spoolDirectory: string;

  constructor(base: URL, deps: { sender: HttpSender; spoolDirectory: string }) {
    this.#base = new URL(base);
    this.#base.pathname = base.pathname.replace(/\/*$/, "/");
    this.#sender = deps.sender;
    this.#spoolDirectory = deps.spoolDirectory;
  }

  async put(
    key: string,
    body: AsyncIterable<Uint8Array>,
    { signal }: ObjectOptions = {},
  ): Promise<StoredObject> {
    const url = this.#url(key);
    await using spool = await Spool.of(this.#spoolDirectory, body, signal);
    const reply = await this.#sender.send({
      method: "PUT",
      url,
      headers: {
        "content-type": "application/octet-stream",
        "content-length": String(spool.stored.bytes),
        "content-md5": spool.md5.toString("base64"),
      },
      body: spool.read(),
      signal,
    });
    if (reply.status < 200 || reply.status >= 300) throw await failed(reply, `Storing ${shown(url)}`);
    reply.discard();
    await this.#verify(url, spool.stored.bytes, signal);
    return spool.stored;
  }

  async get(key: string, { signal }: ObjectOptions = {}): Promise<AsyncIterable<Uint8Array>> {
    const url = this.#url(key);
    const reply = await this.#sender.send({ method: "GET", url, signal });
    if (reply.status === 200) return whole(reply, url, signal);
    if (reply.status !== 404 && reply.status !== 410) throw await failed(reply, `Reading ${shown(url)}`);
    reply.discard();
    throw objectNotFound(shown(url));
  }

  async head(key: string, { signal }: ObjectOptions = {}): Promise<ObjectInfo | undefined> {
    const url = this.#url(key);
    const reply = await this.#sender.send({ method: "HEAD", url, signal });
    reply.discard();
    if (reply.status === 404 || reply.status === 410) return undefined;
    const bytes = lengthOf(reply);
    return bytes === undefined ? await this.#glance(url, signal) : { bytes };
  }

  async remove(key: string, { signal }: ObjectOptions = {}): Promise<void> {
    const url = this.#url(key);
    const reply = await this.#sender.send({ method: "DELETE", url, signal });
    const isGone = reply.status === 404 || reply.status === 410;
    if (!isGone && (reply.status < 200 || reply.status >= 300))
      throw await failed(reply, `Removing ${shown(url)}`);
    reply.discard();
  }

  /** The same by its first byte: an address may be signed for GET alone, and not every server says a length to HEAD. */
  async #glance(url: URL, signal: AbortSignal | undefined): Promise<ObjectInfo | undefined> {
    const reply = await this.#sender.send({ method: "GET", url, headers: { range: "bytes=0-0" }, signal });
    reply.discard();
    if (reply.status === 404 || reply.status === 410) return undefined;
    const bytes = lengthOf(reply);
    if (bytes === undefined) throw await failed(reply, `Looking at ${shown(url)}`);
    return { bytes };
  }

  /** An address that is signed for uploads cannot be looked at; where it can, a wrong size is a failure. */
  async #verify(url: URL, bytes: number, signal: AbortSignal | undefined): Promise<void> {
    const reply = await this.#sender.send({ method: "HEAD", url, signal });
    reply.discard();
    const length = reply.headers["content-length"];
    if (reply.status !== 200 || length === undefined || Number(length) === bytes) return;
    throw new AidoError("OBJECT_BROKEN", `${shown(url)} has ${length} bytes where ${bytes} were sent`, {
      hint: "The server may have no space left. Try again.",
    });
  }

  #url(key: string): URL {
    const url = new URL(this.#base);
    url.pathname += checkKey(key).split("/").map(encodeURIComponent).join("/");
    return url;
  }
}

async function* whole(
  reply: HttpReply,
  url: URL,
  signal: HttpRequest["signal"],
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* reply.body;
  } catch (thrown) {
    throw translate(thrown, url, signal);
  } finally {
    reply.discard();
  }
}

/** Of the whole object; undefined when the answer does not say. */
function lengthOf({ status, headers }: HttpReply): number | undefined {
  const said =
    status === 206 ? /\/(\d+)$/.exec(headers["content-range"] ?? "")?.[1] : headers["content-length"];
  const isSaid = (status === 200 || status === 206) && said !== undefined;
  return isSaid ? Number(said) : undefined;
}

async function failed(reply: HttpReply, what: string): Promise<AidoError> {
  reply.discard();
  const { status } = reply;
  const isPassing = status === 408 || status === 429 || status >= 500;
  const redirect =
    status >= 300 && status < 400 ? " Redirects are not followed: give the final address." : "";
  return new AidoError(
    isPassing ? "OBJECT_STORE_UNAVAILABLE" : "OBJECT_STORE_REFUSED",
    `${what} failed: the server answered ${status}`,
    {
      hint: isPassing ? "Try again in a while." : `Check the address and what it allows.${redirect}`,
      details: { status },
    },
  );
}

function shown(url: URL): string {
  return printableAddress(url.href);
}

import { createHash } from "node:crypto";
import { AidoError } from "@aido/sdk/protocol";
import { AwsV4Signer } from "aws4fetch";
import type { Clock } from "../../core/clock.ts";
import type { HttpReply, HttpRequest, HttpSender } from "../wire/http-sender.ts";

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

export interface S3Settings {
  /** Amazon's when undefined. */
  readonly endpoint: string | undefined;
  readonly region: string;
  /** Undefined means: with an endpoint of one's own, and for names that no certificate fits. */
  readonly pathStyle: boolean | undefined;
  /** Read at each request, so that keys may change; undefined when there are none. */
  readonly credentials: () => S3Credentials | undefined;
}

export type S3Request = Pick<HttpRequest, "method" | "signal"> & {
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
};

const EMPTY = new Uint8Array();
/** What names of buckets may be; the name becomes a part of a host's name. */
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/** Signed requests for one bucket. The server checks the body against the hash that is signed with it. */
export class S3Client {
  readonly #base: URL;
  readonly #settings: S3Settings;
  readonly #sender: HttpSender;
  readonly #clock: Clock;

  constructor(bucket: string, deps: { settings: S3Settings; sender: HttpSender; clock: Clock }) {
    this.#settings = deps.settings;
    this.#sender = deps.sender;
    this.#clock = deps.clock;
    this.#base = bucketAddress(bucket, deps.settings);
  }

  async send({ method, key, query = {}, headers = {}, body = EMPTY, signal }: S3Request): Promise<HttpReply> {
    const url = new URL(this.#base);
    url.pathname += key.split("/").map(escapeSegment).join("/");
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const credentials = this.#settings.credentials();
    if (credentials === undefined) throw noCredentials();
    const signer = new AwsV4Signer({
      method,
      url: url.href,
      service: "s3",
      region: this.#settings.region,
      accessKeyId: credentials.accessKeyId,
      secretAccessKey: credentials.secretAccessKey,
      ...(credentials.sessionToken === undefined ? {} : { sessionToken: credentials.sessionToken }),
      datetime: this.#clock
        .now()
        .toISOString()
        .replace(/[:-]|\.\d{3}/g, ""),
      headers: { ...headers, "x-amz-content-sha256": createHash("sha256").update(body).digest("hex") },
      allHeaders: true,
    });
    const signed = await signer.sign();
    const length = method === "PUT" || method === "POST" ? { "content-length": String(body.byteLength) } : {};
    return await this.#sender.send({
      method,
      url: signed.url,
      headers: { ...Object.fromEntries(signed.headers), ...length },
      body,
      signal,
    });
  }
}

function bucketAddress(bucket: string, { endpoint, region, pathStyle }: S3Settings): URL {
  if (!BUCKET.test(bucket) || bucket.includes("..")) {
    throw new AidoError("VALIDATION_ERROR", `${JSON.stringify(bucket)} is no name of a bucket`, {
      hint: "An address of S3 is s3://bucket/path/name.",
    });
  }
  const base = new URL(endpoint ?? `https://s3.${region}.amazonaws.com`);
  base.pathname = base.pathname.replace(/\/*$/, "/");
  if (pathStyle ?? (endpoint !== undefined || bucket.includes("."))) base.pathname += `${bucket}/`;
  else base.hostname = `${bucket}.${base.hostname}`;
  return base;
}

/** As the signature counts it, so that both sides see the same path. */
function escapeSegment(segment: string): string {
  return encodeURIComponent(segment).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function noCredentials(): AidoError {
  return new AidoError("OBJECT_STORE_REFUSED", "There are no credentials for S3", {
    hint: "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AIDO_S3_ACCESS_KEY_ID_FILE and AIDO_S3_SECRET_ACCESS_KEY_FILE.",
  });
}

import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { AwsV4Signer } from "aws4fetch";
import type { RoleCredentials, RoleRequest, RoleSessions } from "../core/aws/role-sessions.ts";
import type { Clock } from "../core/clock.ts";
import { HttpSender } from "../objects/wire/http-sender.ts";
import { xmlField } from "../objects/wire/xml-field.ts";
import { toStsError } from "./sts-error.ts";

export interface StsSettings {
  /** Amazon's of the region when undefined. */
  readonly endpoint: string | undefined;
  readonly region: string;
  readonly externalId: string | undefined;
  readonly credentials: () => {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken: string | undefined;
  };
}

/** Less is of no use: the clocks of the two sides differ, or the answer is wrong. */
const LEAST_MS = 60_000;
const KEY_ID = /^\w{16,128}$/;
/** As they can stand in a header; an answer larger than a sandbox can be handed is none. */
const SECRET = /^[\x21-\x7e]{1,512}$/;
const TOKEN = /^[\x21-\x7e]{1,12000}$/;

/** Roles by the Security Token Service, or anything that speaks its protocol. */
export class StsSessions implements RoleSessions {
  readonly #settings: StsSettings;
  readonly #clock: Clock;
  readonly #sender = new HttpSender({ isTrusted: true });

  constructor(settings: StsSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
  }

  async assume(request: RoleRequest, signal?: AbortSignal): Promise<RoleCredentials> {
    const { status, text, url } = await this.#send(request, signal);
    if (status !== 200) throw toStsError(status, text, request.roleArn);
    const credentials = readCredentials(text);
    if (credentials === undefined) throw noCredentials(url);
    if (credentials.expiresAt.getTime() - this.#clock.now().getTime() < LEAST_MS) throw tooShort(credentials);
    return credentials;
  }

  async #send(
    request: RoleRequest,
    signal: AbortSignal | undefined,
  ): Promise<{ status: number; text: string; url: URL }> {
    const { endpoint, region, externalId, credentials } = this.#settings;
    const { accessKeyId, secretAccessKey, sessionToken } = credentials();
    const url = new URL(endpoint ?? defaultEndpoint(region));
    const form = new URLSearchParams({
      Action: "AssumeRole",
      Version: "2011-06-15",
      RoleArn: request.roleArn,
      RoleSessionName: request.sessionName,
      DurationSeconds: String(request.durationSeconds),
      Policy: request.policy,
      ...(externalId === undefined ? {} : { ExternalId: externalId }),
    });
    const body = form.toString();
    const signer = new AwsV4Signer({
      method: "POST",
      url: url.href,
      service: "sts",
      region,
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === undefined ? {} : { sessionToken }),
      datetime: this.#clock
        .now()
        .toISOString()
        .replace(/[:-]|\.\d{3}/g, ""),
      headers: { "content-type": "application/x-www-form-urlencoded" },
      allHeaders: true,
      body,
    });
    const signed = await signer.sign();
    const bytes = Buffer.from(body);
    try {
      const reply = await this.#sender.send({
        method: "POST",
        url: signed.url,
        headers: { ...Object.fromEntries(signed.headers), "content-length": String(bytes.byteLength) },
        body: bytes,
        signal,
      });
      return { status: reply.status, text: await reply.text(), url };
    } catch (thrown) {
      if (signal?.aborted === true) throw signal.reason;
      throw unreachable(url, thrown);
    }
  }
}

function defaultEndpoint(region: string): string {
  return `https://sts.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`;
}

function readCredentials(xml: string): RoleCredentials | undefined {
  const accessKeyId = xmlField(xml, "AccessKeyId") ?? "";
  const secretAccessKey = xmlField(xml, "SecretAccessKey") ?? "";
  const sessionToken = xmlField(xml, "SessionToken") ?? "";
  const expiresAt = new Date(xmlField(xml, "Expiration") ?? "");
  const isWhole =
    KEY_ID.test(accessKeyId) &&
    SECRET.test(secretAccessKey) &&
    TOKEN.test(sessionToken) &&
    !Number.isNaN(expiresAt.getTime());
  return isWhole ? { accessKeyId, secretAccessKey, sessionToken, expiresAt } : undefined;
}

/** Nothing of the answer is shown: what is no credentials may still hold some. */
function noCredentials(url: URL): AidoError {
  return new AidoError("AWS_UNAVAILABLE", `${url.host} answered with something that is no credentials`, {
    hint: "Is it an STS server? The setting is aws.stsEndpoint (AIDO_AWS_STS_ENDPOINT).",
    details: { host: url.host },
  });
}

function tooShort({ expiresAt }: RoleCredentials): AidoError {
  return new AidoError("AWS_UNAVAILABLE", `STS gave credentials that end at ${expiresAt.toISOString()}`, {
    hint: "Is the clock of this machine right?",
  });
}

function unreachable(url: URL, thrown: unknown): AidoError {
  const why = isAidoError(thrown) ? thrown.message : `${url.host} broke off its answer`;
  return new AidoError("AWS_UNAVAILABLE", `STS cannot be asked for the role: ${why}`, {
    hint: "Check the network, and the setting aws.stsEndpoint (AIDO_AWS_STS_ENDPOINT) if there is one.",
    details: { host: url.host },
    cause: thrown,
  });
}

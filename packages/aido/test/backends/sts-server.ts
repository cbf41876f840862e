import { createHash, createHmac, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export const STS_KEYS = {
  accessKeyId: "AKIAHOSTHOSTHOSTHOST",
  secretAccessKey: "host-secret-of-the-operator/+=",
};
export const READ_ROLE = "arn:aws:iam::123456789012:role/aido-read";
export const WRITE_ROLE = "arn:aws:iam::123456789012:role/team/aido-write";
const SKEW_MS = 5 * 60_000;

export interface IssuedCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string;
  expiresAt: Date;
}

export interface StsCall {
  params: Readonly<Record<string, string>>;
  policy: { Statement: { Action: string[]; Condition?: unknown }[] };
  issued: IssuedCredentials;
}

/**
 * The part of the Security Token Service that hands out roles: it computes each request's signature itself, by the
 * published algorithm, and answers as STS does.
 */
export class StsServer implements AsyncDisposable {
  readonly calls: StsCall[] = [];
  /** Codes of requests that got nothing. */
  readonly refusals: string[] = [];
  readonly roles = new Set([READ_ROLE, WRITE_ROLE]);
  maxSeconds = 3600;
  externalId: string | undefined;
  now: () => Date = () => new Date();
  /** In place of an answer of its own. */
  answer: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  readonly #server = createServer((request, response) => void this.#handle(request, response));

  static async start(): Promise<StsServer> {
    const server = new StsServer();
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** As a process is told by its environment. */
  get env(): Readonly<Record<string, string>> {
    return {
      AWS_ENDPOINT_URL_STS: this.url,
      AWS_ACCESS_KEY_ID: STS_KEYS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: STS_KEYS.secretAccessKey,
      AIDO_AWS_READONLY_ROLE: READ_ROLE,
      AIDO_AWS_READWRITE_ROLE: WRITE_ROLE,
    };
  }

  /** Whatever nobody but the sandbox may ever see. */
  get secrets(): readonly string[] {
    return this.calls.flatMap(({ issued }) => [issued.secretAccessKey, issued.sessionToken]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (this.answer !== undefined) {
      this.answer(request, response);
      return;
    }
    const body = Buffer.concat(chunks);
    const params = Object.fromEntries(new URLSearchParams(body.toString()));
    const refusal = this.#refusal(request, body, params);
    if (refusal !== undefined) {
      this.refusals.push(refusal.code);
      const { status, code, message } = refusal;
      const xml = `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`;
      response.writeHead(status, { "content-type": "text/xml" }).end(xml);
      return;
    }
    const issued = {
      accessKeyId: `ASIA${randomBytes(8).toString("hex").toUpperCase()}`,
      secretAccessKey: `${randomBytes(27).toString("base64")}/+=`,
      sessionToken: `${randomBytes(300).toString("base64")}==`,
      expiresAt: new Date(this.now().getTime() + Number(params["DurationSeconds"]) * 1000),
    };
    this.calls.push({ params, policy: JSON.parse(params["Policy"] ?? "{}"), issued });
    response.writeHead(200, { "content-type": "text/xml" }).end(toXml(issued));
  }

  #refusal(request: IncomingMessage, body: Buffer, params: Readonly<Record<string, string>>) {
    const refuse = (status: number, code: string, message: string) => ({ status, code, message });
    const problem = signatureProblem(request, body, this.now());
    if (problem !== undefined) return refuse(403, problem, "The request is not signed as it must be");
    if (params["Action"] !== "AssumeRole" || params["Version"] !== "2011-06-15") {
      return refuse(400, "InvalidAction", "Only AssumeRole of 2011-06-15 is known here");
    }
    if (!/^[\w+=,.@-]{2,64}$/.test(params["RoleSessionName"] ?? "")) {
      return refuse(400, "ValidationError", "RoleSessionName does not match");
    }
    const seconds = Number(params["DurationSeconds"]);
    if (!(seconds >= 900)) return refuse(400, "ValidationError", "DurationSeconds must be 900 or more");
    if (seconds > this.maxSeconds) {
      return refuse(
        400,
        "ValidationError",
        "The requested DurationSeconds exceeds the MaxSessionDuration set for this role",
      );
    }
    if ((params["Policy"] ?? "").length > 2048) return refuse(400, "PackedPolicyTooLarge", "Too large");
    const isKnown = this.roles.has(params["RoleArn"] ?? "") && params["ExternalId"] === this.externalId;
    return isKnown
      ? undefined
      : refuse(403, "AccessDenied", "User &lt;host&gt; is not authorized to perform: sts:AssumeRole");
  }
}

/** Signature Version 4 from its description, without the library that aido signs with. */
function signatureProblem(request: IncomingMessage, body: Buffer, now: Date): string | undefined {
  const header = request.headers.authorization ?? "";
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/sts\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/.exec(
      header,
    );
  if (match === null) return "IncompleteSignature";
  const [, key, date = "", region = "", names = "", signature = ""] = match;
  if (key !== STS_KEYS.accessKeyId) return "InvalidClientTokenId";
  const stamp = String(request.headers["x-amz-date"]);
  const at = new Date(stamp.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
  const signed = names.split(";");
  const isWhole = stamp.startsWith(date) && signed.includes("host") && signed.includes("x-amz-date");
  if (!isWhole || !(Math.abs(at.getTime() - now.getTime()) <= SKEW_MS)) return "SignatureDoesNotMatch";
  const sha = (text: string | Buffer) => createHash("sha256").update(text).digest("hex");
  const mac = (secret: string | Buffer, text: string) => createHmac("sha256", secret).update(text).digest();
  const headers = signed.map((name) => `${name}:${String(request.headers[name] ?? "").trim()}\n`).join("");
  const canonical = [request.method, request.url, "", headers, names, sha(body)].join("\n");
  const scope = `${date}/${region}/sts/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", stamp, scope, sha(canonical)].join("\n");
  const secret = [date, region, "sts", "aws4_request"].reduce<string | Buffer>(
    mac,
    `AWS4${STS_KEYS.secretAccessKey}`,
  );
  return mac(secret, text).toString("hex") === signature ? undefined : "SignatureDoesNotMatch";
}

function toXml({ accessKeyId, secretAccessKey, sessionToken, expiresAt }: IssuedCredentials): string {
  const expiration = expiresAt.toISOString().replace(/\.\d{3}/, "");
  return `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleResult>
    <AssumedRoleUser><AssumedRoleId>ARO:x</AssumedRoleId></AssumedRoleUser>
    <Credentials>
      <AccessKeyId>${accessKeyId}</AccessKeyId>
      <SecretAccessKey>${secretAccessKey}</SecretAccessKey>
      <SessionToken>${sessionToken}</SessionToken>
      <Expiration>${expiration}</Expiration>
    </Credentials>
  </AssumeRoleResult>
</AssumeRoleResponse>`;
}

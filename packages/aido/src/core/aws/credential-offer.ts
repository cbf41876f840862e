import { createHmac, randomBytes } from "node:crypto";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type { SandboxRecord } from "../store/store.ts";
import type { Supervisor } from "../supervisor/supervisor.ts";
import type { AwsGrant } from "./aws-access.ts";

/** Below the ports that connections get by chance. */
const PORT = 15_170;
/** When it was made and when it ends, so that every process can tell the last and when to renew it. */
const ID = /^aws-(\d{1,15})-(\d{1,12})-[\w-]+$/;
const KILL = { signal: 9, scope: "all", graceMs: 0 } as const;
/** No session of STS is longer. */
const LONGEST_MS = 12 * 3_600_000;

/** Credentials that a sandbox's loopback answers with, by this process or another. */
export interface CredentialOffer {
  readonly id: string;
  readonly grantedAt: Date;
  readonly expiresAt: Date;
  /** Settles when it has ended, whatever the reason; undefined for another process's. */
  readonly ended: Promise<void> | undefined;
}

/**
 * What the AWS SDKs look for. The token belongs to the sandbox's incarnation and can be made again by whoever has its
 * record, so that commands go on after the aido process that started them is gone.
 */
export function credentialEnvironment(
  record: Pick<SandboxRecord, "permissions" | "supervisorToken">,
): Readonly<Record<string, string>> {
  if (record.permissions?.aws === undefined) return {};
  return {
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://127.0.0.1:${PORT}/`,
    AWS_CONTAINER_AUTHORIZATION_TOKEN: tokenOf(record),
  };
}

/** Answers from now on, in place of whatever did before. Raises AWS_UNAVAILABLE. */
export async function offerCredentials(
  supervisor: Supervisor,
  record: Pick<SandboxRecord, "supervisorToken">,
  grant: AwsGrant,
  now: Date,
): Promise<CredentialOffer> {
  const until = Math.floor(grant.expiresAt.getTime() / 1000);
  const seconds = Math.max(0, until - Math.ceil(now.getTime() / 1000));
  const id = `aws-${now.getTime()}-${until}-${randomBytes(9).toString("base64url")}`;
  const stdin = Buffer.from(`${tokenOf(record)}\n${responseOf(grant)}`);
  const run = supervisor.tool(["offer", String(PORT), String(seconds)], { id, stdin, isLasting: true });
  // Never left by `return`, which would end the tool: it answers for as long as the sandbox lives, or until the next.
  const first = await run.stdout[Symbol.asyncIterator]().next();
  if (first.done === true) throw notOffered(await run.done.catch((thrown: unknown) => thrown));
  await endOthers(supervisor, id);
  const { grantedAt, expiresAt } = grant;
  return { id, grantedAt, expiresAt, ended: run.done.catch(() => undefined) };
}

/** The last one, whoever made it; undefined when there is none. */
export async function findOffer(supervisor: Supervisor, now: Date): Promise<CredentialOffer | undefined> {
  const found = (await supervisor.list())
    .filter(({ id, ended }) => !ended && ID.test(id) && timesOf(id).until <= now.getTime() + LONGEST_MS)
    .toSorted((a, b) => (isBefore(a.id, b.id) ? 1 : -1))[0];
  if (found === undefined) return undefined;
  const { made, until } = timesOf(found.id);
  return { id: found.id, grantedAt: new Date(made), expiresAt: new Date(until), ended: undefined };
}

/** When two processes offer at once, both take the same one for the last. */
async function endOthers(supervisor: Supervisor, own: string): Promise<void> {
  for (const { id, ended } of await supervisor.list()) {
    if (!ID.test(id) || !isBefore(id, own)) continue;
    // Whoever follows one forgets it when it has ended; nobody follows those of a process that is gone.
    if (ended) supervisor.forget(id);
    else await supervisor.kill(id, KILL).catch(ignoreUnknown);
  }
}

function ignoreUnknown(thrown: unknown): void {
  if (!isAidoError(thrown, "EXECUTION_NOT_FOUND")) throw thrown;
}

function isBefore(one: string, other: string): boolean {
  const [a, b] = [timesOf(one).made, timesOf(other).made];
  return a === b ? one < other : a < b;
}

function timesOf(id: string): { made: number; until: number } {
  const [, made, until] = ID.exec(id) ?? [];
  return { made: Number(made), until: Number(until) * 1000 };
}

function tokenOf({ supervisorToken }: Pick<SandboxRecord, "supervisorToken">): string {
  return createHmac("sha256", supervisorToken).update("aws credentials").digest("base64url");
}

function responseOf({ credentials, expiresAt, roleArn }: AwsGrant): string {
  const body = JSON.stringify({
    AccessKeyId: credentials.accessKeyId,
    SecretAccessKey: credentials.secretAccessKey,
    Token: credentials.sessionToken,
    Expiration: expiresAt.toISOString().replace(/\.\d{3}/, ""),
    RoleArn: roleArn,
  });
  const head = [
    "HTTP/1.1 200 OK",
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Cache-Control: no-store",
    "Connection: close",
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

function notOffered(cause: unknown): AidoError {
  if (isAidoError(cause, "CONTAINER_LOST")) return cause;
  const isTaken = isAidoError(cause) && cause.details["errno"] === "EADDRINUSE";
  const why = isTaken ? `a program in it has taken port ${PORT} of its loopback` : "its supervisor did not";
  return new AidoError("AWS_UNAVAILABLE", `The sandbox was not offered its AWS credentials: ${why}`, {
    hint: isTaken ? "Let that program use another port." : "Stop the sandbox and start it again.",
    ...(cause === undefined ? {} : { cause }),
  });
}

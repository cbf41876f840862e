import { isIP } from "node:net";
import { AidoError } from "@aido/sdk/protocol";
import { isWeb, parseAddress } from "./object-address.ts";
import type { DestinationPolicy, Reach } from "./object-stores.ts";
import { isPublicAddress } from "./public-address.ts";

export interface PolicySettings {
  /** The operator's own place. */
  readonly prefix: string | undefined;
  /** Hosts, with a port or without, and beginnings of addresses. */
  readonly allow: readonly string[];
}

/**
 * Where snapshots may go to and come from. A user's address makes the server connect somewhere, with the server's place in
 * the network and for s3 with its credentials; so only what is public and needs neither is free, the rest the operator allows.
 */
export class OperatorPolicy implements DestinationPolicy {
  readonly #prefix: string | undefined;
  readonly #prefixes: readonly string[];
  readonly #hosts: ReadonlySet<string>;

  constructor({ prefix, allow }: PolicySettings) {
    this.#prefix = prefix === undefined ? undefined : toPrefix(prefix, "snapshot.prefix");
    const isPrefix = (entry: string) => entry.includes("://");
    this.#prefixes = allow.filter(isPrefix).map((entry) => toPrefix(entry, "snapshot.allow"));
    this.#hosts = new Set(allow.filter((entry) => !isPrefix(entry)).map((entry) => toHost(entry)));
  }

  /** Ends with a slash; undefined when the operator keeps no snapshots. */
  get prefix(): string | undefined {
    return this.#prefix;
  }

  isOperatorManaged(address: string): boolean {
    return this.#prefix !== undefined && isBeneath(parseAddress(address), this.#prefix);
  }

  check(url: URL): Reach {
    const prefixes = this.#prefix === undefined ? this.#prefixes : [this.#prefix, ...this.#prefixes];
    if (prefixes.some((prefix) => isBeneath(url, prefix))) return { isTrusted: true };
    if (isWeb(url) && (this.#hosts.has(url.host) || this.#hosts.has(url.hostname)))
      return { isTrusted: true };
    if (url.protocol === "s3:") {
      throw refused("An s3 address is reached with the credentials of aido, which are not for every bucket", {
        hint: `Give an https address that is signed for one upload, or let the operator allow s3://${url.host}/ with AIDO_SNAPSHOT_ALLOW.`,
      });
    }
    if (url.protocol !== "https:") throw refused(`A snapshot must not go to an address of ${url.protocol}`);
    const host = url.hostname.replace(/^\[|\]$/g, "");
    if (isIP(host) !== 0 && !isPublicAddress(host)) throw privateAddress(host);
    return { isTrusted: false };
  }
}

export function privateAddress(address: string): AidoError {
  return refused(`${address} is no public address`);
}

function refused(message: string, options: { hint?: string } = {}): AidoError {
  return new AidoError("DESTINATION_REFUSED", message, {
    hint:
      options.hint ??
      "Use https to a public address, or let the operator allow this one with AIDO_SNAPSHOT_ALLOW.",
  });
}

/** A prefix ends with a slash, so that /backups does not let /backups-of-others in. */
function isBeneath(url: URL, prefix: string): boolean {
  return `${url.protocol}//${url.host}${url.pathname}`.startsWith(prefix);
}

function toPrefix(entry: string, setting: string): string {
  try {
    const url = parseAddress(entry);
    if (url.search !== "") throw new Error("it has a query");
    return `${url.protocol}//${url.host}${url.pathname.replace(/\/*$/, "/")}`;
  } catch (cause) {
    throw new AidoError(
      "INVALID_CONFIG",
      `${setting} is no address of objects: ${(cause as Error).message}`,
      {
        hint: "Write it as s3://bucket/path/ or file:///srv/snapshots/.",
        cause,
      },
    );
  }
}

/** As the parser writes hosts, so that both compare. */
function toHost(entry: string): string {
  const address = `https://${entry}/`;
  if (!URL.canParse(address) || new URL(address).pathname !== "/" || entry.includes("@")) {
    throw new AidoError("INVALID_CONFIG", `snapshot.allow: ${entry} is no host`, {
      hint: "Write hosts as minio.lan or minio.lan:9000, or whole beginnings of addresses such as s3://bucket/.",
    });
  }
  return new URL(address).host;
}

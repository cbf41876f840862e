import { AidoError } from "@aido/sdk/protocol";
import { parseAddress } from "./object-address.ts";
import { checkKey } from "./object-key.ts";
import type { ObjectStore } from "./object-store.ts";

/** How far an address may lead: the operator's own anywhere, others to public addresses only. */
export interface Reach {
  readonly isTrusted: boolean;
}

/** Says what an address may be used for, or raises DESTINATION_REFUSED. */
export interface DestinationPolicy {
  /** The operator's own place, ending with a slash; undefined when there is none. */
  readonly prefix: string | undefined;
  check(url: URL): Reach;
  /** Beneath the operator's prefix: written, read and removed by aido alone. */
  isOperatorManaged(url: string): boolean;
}

export type OpenStore = (url: URL, reach: Reach) => Promise<ObjectStore>;

export interface ObjectStoresDeps {
  readonly policy: DestinationPolicy;
  /** By the protocol of an address, such as `s3:`. */
  readonly open: Readonly<Record<string, OpenStore>>;
}

export interface ObjectPlace {
  readonly store: ObjectStore;
  readonly key: string;
}

/** The one way from an address to a store; no address is used that the policy has not seen. */
export class ObjectStores {
  readonly #deps: ObjectStoresDeps;

  constructor(deps: ObjectStoresDeps) {
    this.#deps = deps;
  }

  /** The store whose keys lie beneath an address: file:///dir, s3://bucket/prefix, https://host/path. */
  async open(address: string): Promise<ObjectStore> {
    const url = parseAddress(address);
    return await this.#open(url, this.#deps.policy.check(url));
  }

  /** The store and the key that the address of one object names. */
  async locate(address: string): Promise<ObjectPlace> {
    const url = parseAddress(address);
    // The operator's objects are looked at from the operator's place: what was made in it for one can go with it.
    const { prefix } = this.#deps.policy;
    const isOwn = prefix !== undefined && this.isOperatorManaged(address);
    const at = isOwn ? parseAddress(prefix).pathname.length : url.pathname.lastIndexOf("/") + 1;
    const key = checkKey(decodeURIComponent(url.pathname.slice(at)));
    // Asked with its whole address: what is allowed may be this one object.
    const reach = this.#deps.policy.check(url);
    const parent = new URL(url);
    parent.pathname = url.pathname.slice(0, at);
    return { store: await this.#open(parent, reach), key };
  }

  isOperatorManaged(address: string): boolean {
    return this.#deps.policy.isOperatorManaged(address);
  }

  async #open(url: URL, reach: Reach): Promise<ObjectStore> {
    const open = this.#deps.open[url.protocol];
    if (open !== undefined) return await open(url, reach);
    throw new AidoError("VALIDATION_ERROR", `Objects cannot be kept at an address of ${url.protocol}`, {
      hint: `An address begins with one of ${Object.keys(this.#deps.open).join(" ")}`,
    });
  }
}

import { createHash } from "node:crypto";
import { OperatorPolicy } from "../../src/core/object-store/destination-policy.ts";
import { objectNotFound } from "../../src/core/object-store/object-key.ts";
import type { ObjectInfo, ObjectStore, StoredObject } from "../../src/core/object-store/object-store.ts";
import { ObjectStores } from "../../src/core/object-store/object-stores.ts";

/** Object stores in memory: the operator's at s3://operator/, and s3://user/ that users may write to. */
export class MemoryObjects {
  readonly prefix = "s3://operator/";
  readonly objects = new Map<string, Buffer>();
  readonly stores: ObjectStores;
  /** Called when an object is whole and its writer has not heard of it yet. */
  during: () => Promise<void> = async () => undefined;

  constructor() {
    const policy = new OperatorPolicy({ prefix: this.prefix, allow: ["s3://user/"] });
    const open = { "s3:": async (url: URL) => this.#storeAt(url.href) };
    this.stores = new ObjectStores({ policy, open });
  }

  #storeAt(base: string): ObjectStore {
    const { objects } = this;
    return {
      put: async (key, body): Promise<StoredObject> => {
        const chunks: Uint8Array[] = [];
        for await (const chunk of body) chunks.push(Uint8Array.from(chunk));
        const content = Buffer.concat(chunks);
        objects.set(base + key, content);
        await this.during();
        return { bytes: content.length, sha256: createHash("sha256").update(content).digest("hex") };
      },
      get: async (key) => {
        const content = objects.get(base + key);
        if (content === undefined) throw objectNotFound(base + key);
        return (async function* () {
          yield content;
        })();
      },
      head: async (key): Promise<ObjectInfo | undefined> => {
        const content = objects.get(base + key);
        return content && { bytes: content.length };
      },
      remove: async (key) => {
        objects.delete(base + key);
      },
    };
  }
}

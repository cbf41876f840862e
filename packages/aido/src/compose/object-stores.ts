import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import { OperatorPolicy } from "../core/object-store/destination-policy.ts";
import { ObjectStores, type OpenStore } from "../core/object-store/object-stores.ts";
import type { S3Settings } from "../objects/s3/s3-client.ts";

/** Every kind of store by the address that names it; loaded when one is used. */
export function makeObjectStores(
  config: Pick<Config, "snapshot" | "s3" | "dataDir">,
  clock: Clock,
): { stores: ObjectStores; policy: OperatorPolicy } {
  const policy = new OperatorPolicy(config.snapshot);
  const web: OpenStore = async (url, { isTrusted }) => {
    const [{ HttpStore }, { HttpSender }] = await Promise.all([
      import("../objects/http/http-store.ts"),
      import("../objects/wire/http-sender.ts"),
    ]);
    const sender = new HttpSender({ isTrusted });
    return new HttpStore(url, { sender, spoolDirectory: join(config.dataDir, "spool") });
  };
  const open = {
    "file:": async (url: URL) => {
      const { DirectoryStore } = await import("../objects/directory/directory-store.ts");
      return new DirectoryStore(fileURLToPath(url));
    },
    "s3:": async (url: URL) => {
      const { S3Store } = await import("../objects/s3/s3-store.ts");
      const prefix = decodeURIComponent(url.pathname).replace(/^\/|\/$/g, "");
      return new S3Store({ bucket: url.host, prefix }, { settings: s3Settings(config), clock });
    },
    "https:": web,
    "http:": web,
  };
  return { stores: new ObjectStores({ policy, open }), policy };
}

function s3Settings({ s3 }: Pick<Config, "s3">): S3Settings {
  const { accessKeyId, secretAccessKey, sessionToken } = s3;
  return {
    endpoint: s3.endpoint,
    region: s3.region,
    pathStyle: s3.pathStyle,
    credentials: () =>
      accessKeyId === undefined || secretAccessKey === undefined
        ? undefined
        : {
            accessKeyId: accessKeyId.reveal(),
            secretAccessKey: secretAccessKey.reveal(),
            sessionToken: sessionToken?.reveal(),
          },
  };
}

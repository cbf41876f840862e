import type { Secret } from "./secret.ts";
import type { SettingDefinition } from "./setting-definition.ts";
import { bytes, flag, secret, text, url } from "./value-kinds.ts";

/** Where snapshots lie and how that is reached. */
export interface ObjectValues {
  "snapshot.prefix": string | undefined;
  "snapshot.allow": string | undefined;
  "snapshot.maxSize": number;
  "s3.endpoint": string | undefined;
  "s3.region": string;
  "s3.accessKeyId": Secret | undefined;
  "s3.secretAccessKey": Secret | undefined;
  "s3.sessionToken": Secret | undefined;
  "s3.pathStyle": boolean | undefined;
}

export const OBJECT_SETTINGS: { readonly [K in keyof ObjectValues]: SettingDefinition<ObjectValues[K]> } = {
  "snapshot.prefix": {
    kind: text,
    default: undefined,
    description:
      "Where snapshots go that name no destination: `file:///…`, `s3://bucket/…` or `https://…`. What lies beneath belongs to aido and is removed with its sandbox.",
    variables: { SANDBOX_SNAPSHOT_DESTINATION_PREFIX: text },
  },
  "snapshot.allow": {
    kind: text,
    default: undefined,
    description:
      "Other destinations that are trusted, separated by commas: hosts such as `minio.lan:9000`, or beginnings of addresses such as `s3://bucket/`. Without it only https to public addresses is.",
  },
  "snapshot.maxSize": {
    kind: bytes,
    default: 64 * 1024 ** 3,
    description: "Largest snapshot, before compression, that is taken or restored; 0 means no limit.",
  },
  "s3.endpoint": {
    kind: url,
    default: undefined,
    description: "The S3 server that `s3://` addresses mean; Amazon's when unset.",
    variables: { AWS_ENDPOINT_URL: url, AWS_ENDPOINT_URL_S3: url },
  },
  "s3.region": {
    kind: text,
    default: "us-east-1",
    description: "Region of the buckets.",
    variables: { AWS_DEFAULT_REGION: text, AWS_REGION: text },
  },
  "s3.accessKeyId": {
    kind: secret,
    default: undefined,
    description: "Account for S3. `AIDO_S3_ACCESS_KEY_ID_FILE` names a file that holds it.",
    variables: { AWS_ACCESS_KEY_ID: secret },
  },
  "s3.secretAccessKey": {
    kind: secret,
    default: undefined,
    description: "Its secret. `AIDO_S3_SECRET_ACCESS_KEY_FILE` names a file that holds it.",
    variables: { AWS_SECRET_ACCESS_KEY: secret },
  },
  "s3.sessionToken": {
    kind: secret,
    default: undefined,
    description: "Goes with keys that are valid for a while only.",
    variables: { AWS_SESSION_TOKEN: secret },
  },
  "s3.pathStyle": {
    kind: flag,
    default: undefined,
    description:
      "Buckets as the first part of the path and not of the host; so by default with an own endpoint.",
  },
};

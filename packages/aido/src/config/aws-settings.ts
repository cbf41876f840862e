import type { Secret } from "./secret.ts";
import type { SettingDefinition } from "./setting-definition.ts";
import { duration, oneOf, secret, text, url } from "./value-kinds.ts";

export type AwsUsers = "admin" | "write" | "nobody";

/** Which permissions in AWS sandboxes can be given, and how aido itself gets at them. */
export interface AwsValues {
  "aws.readonlyRole": string | undefined;
  "aws.readwriteRole": string | undefined;
  "aws.allowedRoles": string | undefined;
  "aws.allowedServices": string | undefined;
  "aws.users": AwsUsers;
  "aws.session": number;
  "aws.region": string;
  "aws.stsEndpoint": string | undefined;
  "aws.externalId": string | undefined;
  "aws.accessKeyId": Secret | undefined;
  "aws.secretAccessKey": Secret | undefined;
  "aws.sessionToken": Secret | undefined;
}

export const AWS_SETTINGS: { readonly [K in keyof AwsValues]: SettingDefinition<AwsValues[K]> } = {
  "aws.readonlyRole": {
    kind: text,
    default: undefined,
    description:
      "ARN of the role that sandboxes with `permissions.aws.role: readonly` get; they are refused when unset. See the guide on AWS.",
  },
  "aws.readwriteRole": {
    kind: text,
    default: undefined,
    description: "The same for `permissions.aws.role: readwrite`.",
  },
  "aws.allowedRoles": {
    kind: text,
    default: undefined,
    description: "ARNs of roles that sandboxes may name themselves, separated by commas; none when unset.",
  },
  "aws.allowedServices": {
    kind: text,
    default: undefined,
    description:
      "Services that sandboxes may ask for, separated by commas, such as `s3,dynamodb`; all when unset.",
  },
  "aws.users": {
    kind: oneOf("admin", "write", "nobody"),
    default: "admin",
    description: "Which keys of a server may ask for AWS permissions.",
  },
  "aws.session": {
    kind: duration,
    default: 3_600_000,
    description:
      "How long credentials of a sandbox last before they are renewed: 15m to what the roles allow, 12h at most.",
  },
  "aws.region": {
    kind: text,
    default: "us-east-1",
    description: "Region of STS, and of sandboxes with AWS permissions that name none.",
    variables: { AWS_DEFAULT_REGION: text, AWS_REGION: text },
  },
  "aws.stsEndpoint": {
    kind: url,
    default: undefined,
    description: "The STS server; Amazon's of the region when unset.",
    variables: { AWS_ENDPOINT_URL: url, AWS_ENDPOINT_URL_STS: url },
  },
  "aws.externalId": {
    kind: text,
    default: undefined,
    description: "What the trust policies of the roles ask for as `sts:ExternalId`, if they do.",
  },
  "aws.accessKeyId": {
    kind: secret,
    default: undefined,
    description:
      "Account that asks STS for the roles; never seen by a sandbox. `AIDO_AWS_ACCESS_KEY_ID_FILE` names a file that holds it.",
    variables: { AWS_ACCESS_KEY_ID: secret },
  },
  "aws.secretAccessKey": {
    kind: secret,
    default: undefined,
    description: "Its secret. `AIDO_AWS_SECRET_ACCESS_KEY_FILE` names a file that holds it.",
    variables: { AWS_SECRET_ACCESS_KEY: secret },
  },
  "aws.sessionToken": {
    kind: secret,
    default: undefined,
    description: "Goes with keys that are valid for a while only.",
    variables: { AWS_SESSION_TOKEN: secret },
  },
};

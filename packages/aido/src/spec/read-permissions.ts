import {
  AWS_ROLE_ARN,
  AWS_ROLES,
  AWS_SERVICES,
  type AwsPermissions,
  type Permissions,
} from "@aido/sdk/protocol";
import { nearestName } from "./nearest-name.ts";
import type { SpecReader, SpecValue } from "./spec-reader.ts";

/** What the sandbox asks for outside of itself; whether it is given is for the machine's settings to say. */
export function readPermissions(reader: SpecReader, value: SpecValue): Permissions | undefined {
  const aws = reader.map(value, ["aws"])?.get("aws");
  if (aws === undefined) return undefined;
  const read = readAws(reader, aws);
  return read === undefined ? undefined : { aws: read };
}

function readAws(reader: SpecReader, aws: SpecValue): AwsPermissions | undefined {
  const keys = reader.map(aws, ["role", "services"]);
  if (keys === undefined) return undefined;
  const before = reader.problems.length;
  const role = keys.get("role");
  const services = keys.get("services");
  const read = {
    role: role === undefined ? AWS_ROLES[0] : readRole(reader, role),
    services: services === undefined ? [] : readServices(reader, services),
  };
  const isWrong = reader.problems.length > before;
  if (!isWrong && read.services.length === 0) {
    const what = `${aws.path}.services is ${services === undefined ? "missing" : "empty"}`;
    reader.problem(services ?? aws, what, "Name what the sandbox needs, for example services: [s3].");
    return undefined;
  }
  return isWrong ? undefined : read;
}

function readRole(reader: SpecReader, value: SpecValue): string {
  const role = reader.text(value, "role: readonly");
  if (role !== undefined && !AWS_ROLES.some((known) => known === role) && !AWS_ROLE_ARN.test(role)) {
    const what = `${value.path} must be readonly, readwrite or the ARN of a role`;
    reader.problem(value, what, "Write role: readonly.");
  }
  return role ?? "";
}

function readServices(reader: SpecReader, value: SpecValue): readonly string[] {
  const names: string[] = [];
  for (const item of reader.list(value, "s3") ?? []) {
    const name = reader.text(item, "- s3");
    if (name === undefined) continue;
    names.push(name);
    if (AWS_SERVICES.some((known) => known === name)) continue;
    const near = nearestName(name, AWS_SERVICES);
    const fix =
      near === undefined
        ? `Services are called as in IAM policies: ${AWS_SERVICES.join(", ")}.`
        : `Did you mean ${near}?`;
    reader.problem(item, `${item.path} is no AWS service that aido knows`, fix);
  }
  return names;
}

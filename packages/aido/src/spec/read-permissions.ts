import type { SpecReader, SpecValue } from "./spec-reader.ts";

const ROLES = ["readonly", "readwrite"];

/** Checks `permissions` in full, then refuses it: a permission that nobody enforces must not look granted. */
export function readPermissions(reader: SpecReader, value: SpecValue): void {
  const aws = reader.map(value, ["aws"])?.get("aws");
  if (aws === undefined) return;
  const keys = reader.map(aws, ["role", "services"]);
  if (keys === undefined) return;
  const before = reader.problems.length;
  const role = keys.get("role");
  if (role !== undefined) {
    const text = reader.text(role, "role: readonly");
    if (text !== undefined && !ROLES.includes(text)) {
      reader.problem(role, `${role.path} must be readonly or readwrite`, "Write role: readonly.");
    }
  }
  const services = keys.get("services");
  for (const service of services === undefined ? [] : (reader.list(services, "s3") ?? [])) {
    reader.text(service, "- s3");
  }
  if (reader.problems.length > before) return;
  reader.problem(
    aws,
    "permissions.aws is understood but not enforced yet, so a sandbox with it is refused",
    "Remove permissions.aws; the sandbox then has no access to AWS.",
  );
}

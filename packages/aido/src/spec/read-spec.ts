import {
  MAX_DECLARED_OUTPUTS,
  type Network,
  type Permissions,
  type ResourceLimits,
  type StepSpec,
} from "@aido/sdk/protocol";
import { isInnerPath } from "./inner-path.ts";
import { readDuration } from "./read-duration.ts";
import { readEnv } from "./read-env.ts";
import { readPermissions } from "./read-permissions.ts";
import { readResources } from "./read-resources.ts";
import { readSteps } from "./read-steps.ts";
import type { SpecReader, SpecValue } from "./spec-reader.ts";
import { isTemplateName, TEMPLATE_NAMES } from "./templates.ts";

export const SPEC_KEYS = [
  "name",
  "runtime",
  "ttl",
  "inputs",
  "outputs",
  "permissions",
  "resources",
  "env",
  "network",
  "steps",
  "template",
] as const;

/** What one file says by itself; absent is undefined, so that a template can fill it. */
export interface RawSpec {
  /** Top-level keys that are there, right or wrong. */
  present: ReadonlySet<string>;
  name?: string | undefined;
  runtime?: string | undefined;
  ttlMs?: number | undefined;
  inputs?: readonly string[] | undefined;
  outputs?: readonly string[] | undefined;
  limits?: Partial<ResourceLimits> | undefined;
  timeoutMs?: number | undefined;
  env?: Readonly<Record<string, string>> | undefined;
  network?: Network | undefined;
  permissions?: Permissions | undefined;
  steps?: readonly StepSpec[] | undefined;
  template?: string | undefined;
}

export function readSpec(reader: SpecReader, root: SpecValue): RawSpec {
  const keys = reader.map(root, SPEC_KEYS);
  if (keys === undefined) return { present: new Set(SPEC_KEYS) };
  const read = <T>(key: string, how: (reader: SpecReader, value: SpecValue) => T): T | undefined => {
    const value = keys.get(key);
    return value === undefined ? undefined : how(reader, value);
  };
  return {
    present: new Set(keys.keys()),
    name: read("name", readName),
    runtime: read("runtime", readRuntime),
    ttlMs: read("ttl", readDuration),
    inputs: read("inputs", (at, value) => readPaths(at, value, "data/*.csv")),
    outputs: read("outputs", readOutputs),
    ...read("resources", readResources),
    env: read("env", readEnv),
    network: read("network", readNetwork),
    permissions: read("permissions", readPermissions),
    steps: read("steps", readSteps),
    template: read("template", readTemplate),
  };
}

function readName(reader: SpecReader, value: SpecValue): string | undefined {
  const name = reader.text(value, "name: my-task");
  if (name === undefined || (/^[a-z0-9][a-z0-9-]*$/.test(name) && name.length <= 63)) return name;
  reader.problem(
    value,
    `name may have up to 63 of a-z, 0-9 and "-", and starts with a letter or a digit`,
    `Write for example name: ${suggestName(name)}.`,
  );
  return undefined;
}

function suggestName(name: string): string {
  const plain = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+/, "")
    .slice(0, 63)
    .replace(/-+$/, "");
  return plain === "" ? "my-task" : plain;
}

const IMAGE =
  /^[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?::[0-9]+)?(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/;

function readRuntime(reader: SpecReader, value: SpecValue): string | undefined {
  const runtime = reader.text(value, "runtime: python");
  if (runtime === undefined || (runtime.length <= 255 && IMAGE.test(runtime))) return runtime;
  reader.problem(
    value,
    "runtime is neither python, node or bash nor the name of an image",
    "Write for example runtime: python or runtime: debian:12-slim.",
  );
  return undefined;
}

function readPaths(reader: SpecReader, value: SpecValue, example: string): readonly string[] | undefined {
  const items = reader.list(value, example);
  if (items === undefined) return undefined;
  const paths: string[] = [];
  for (const item of items) {
    const path = reader.text(item, `- ${example}`);
    if (path === undefined) continue;
    if (value.path === "outputs" ? isInnerPath(beneathOutputs(path)) : isInnerPath(path)) paths.push(path);
    else
      reader.problem(
        item,
        `${item.path} leads out of the ${value.path === "outputs" ? "outputs" : "project"}`,
        `Write a relative path without "..", for example ${example}.`,
      );
  }
  return paths;
}

function readOutputs(reader: SpecReader, value: SpecValue): readonly string[] | undefined {
  const paths = readPaths(reader, value, "report.md");
  if (paths !== undefined && paths.length > MAX_DECLARED_OUTPUTS) {
    reader.problem(
      value,
      `outputs may have up to ${MAX_DECLARED_OUTPUTS} entries`,
      "Name directories or write patterns, for example plots/*.png.",
    );
  }
  return paths?.map(beneathOutputs);
}

/** `/outputs/report.md` and `report.md` are the same declared output. */
function beneathOutputs(path: string): string {
  return path.replace(/^\/outputs\//, "").replace(/^(\.\/)+/, "");
}

function readNetwork(reader: SpecReader, value: SpecValue): Network | undefined {
  const network = reader.text(value, "network: none");
  if (network === undefined || network === "none" || network === "bridge") return network;
  if (network === "host") {
    reader.problem(
      value,
      "network host is not for a spec",
      "Write network: bridge, or run with --dangerous-allow-host-network.",
    );
  } else {
    reader.problem(
      value,
      "network must be none or bridge",
      "Write network: none (no network) or network: bridge.",
    );
  }
  return undefined;
}

function readTemplate(reader: SpecReader, value: SpecValue): string | undefined {
  const template = reader.text(value, "template: python");
  if (template === undefined || isTemplateName(template)) return template;
  reader.problem(value, "there is no such template", `The templates are ${TEMPLATE_NAMES.join(", ")}.`);
  return undefined;
}

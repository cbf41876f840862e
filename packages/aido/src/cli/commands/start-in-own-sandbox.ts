import type { RunOptions, Runs } from "@aido/sdk";
import { ISOLATIONS, type RunRecord } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { parseDuration } from "../options/duration.ts";
import { parsePairs } from "../options/pairs.ts";
import { oneOf, toLimits } from "./create.ts";
import type { RunCommandOptions } from "./run.ts";

/** Starts one task in a sandbox of its own, as its options say; the rest fits the task's extension. */
export async function startInOwnSandbox(
  context: CliContext,
  runs: Runs,
  request: { path: string; options: RunCommandOptions; how: RunOptions },
): Promise<RunRecord> {
  const { path, options, how } = request;
  const [{ implicitSpec }, { readTask }] = await Promise.all([
    import("../../spec/implicit-spec.ts"),
    import("../../spec/read-task.ts"),
  ]);
  const task = await readTask(path);
  const isolation = oneOf(options.isolation, ISOLATIONS, "--isolation");
  const { spec } = implicitSpec(path);
  const runtime = options.runtime ?? options.image ?? spec.runtime;
  const ttlMs = options.ttl === undefined ? spec.ttlMs : parseDuration(options.ttl, "--ttl");
  const wanted = {
    ...spec,
    runtime,
    ttlMs,
    limits: { ...spec.limits, ...toLimits(options) },
    env: { ...spec.env, ...parsePairs(options.env ?? [], "--env", (name) => context.env[name]) },
  };
  // JSON strings are YAML strings. Environment values stay out of the copy: they may be secrets.
  const specText = `name: ${JSON.stringify(spec.name)}\nruntime: ${JSON.stringify(runtime)}\nttl: ${Math.ceil(ttlMs / 1000)}s\n`;
  const { autoDestroy, dangerousAllowHostNetwork, dangerousAllowPrivileged } = options;
  const start = { task, hostNetwork: dangerousAllowHostNetwork, privileged: dangerousAllowPrivileged };
  const up = { spec: wanted, specText, inputs: [], autoDestroy, isolation, implicit: true, start };
  return await runs.up(up, how);
}

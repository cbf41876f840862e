import {
  AidoError,
  type CreateSandbox,
  ISOLATIONS,
  NETWORKS,
  PROFILES,
  type ResourceLimits,
} from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { parseBytes } from "../options/bytes.ts";
import { parseDuration } from "../options/duration.ts";
import { parseNumber } from "../options/numbers.ts";
import { parsePairs } from "../options/pairs.ts";
import { note, printResult } from "../output/print.ts";
import { interruptible } from "./interrupt.ts";

export interface CreateOptions {
  image?: string;
  name?: string;
  profile?: string;
  ttl?: string;
  idleTimeout?: string;
  autoResume?: boolean;
  workspace?: string;
  snapshotDestination?: string;
  cpus?: string;
  memory?: string;
  pids?: string;
  disk?: string;
  env?: readonly string[];
  label?: readonly string[];
  network?: string;
  isolation?: string;
  workdir?: string;
  user?: string;
  history?: boolean;
  dangerousAllowHostNetwork?: boolean;
  dangerousAllowPrivileged?: boolean;
}

export async function create(context: CliContext, options: CreateOptions): Promise<number> {
  const request = toCreateSandbox(options, (name) => context.env[name]);
  const aido = await context.open({ launches: true });
  return interruptible(context, async (signal) => {
    const sandbox = await aido.sandboxes.create(request, { onProgress: context.progress.show, signal });
    context.progress.clear();
    await printResult(context, sandbox, () => `${sandbox.id}\n`);
    if (sandbox.token !== undefined) {
      await note(context, `Sidecar API: ${sandbox.sidecarUrl}  token, shown this once: ${sandbox.token}`);
    }
    await note(context, `Next: aido exec ${sandbox.id} -- <command>   or   aido shell ${sandbox.id}`);
    return 0;
  });
}

export function toCreateSandbox(
  options: CreateOptions,
  lookup: (name: string) => string | undefined,
): CreateSandbox {
  const network = oneOf(options.network, NETWORKS, "--network");
  if (network === "host" && !options.dangerousAllowHostNetwork) {
    throw new AidoError("VALIDATION_ERROR", "--network host gives the sandbox the host's own network", {
      hint: "If that is really wanted, write --dangerous-allow-host-network instead.",
    });
  }
  return {
    name: options.name,
    profile: oneOf(options.profile, PROFILES, "--profile"),
    image: options.image,
    isolation: oneOf(options.isolation, ISOLATIONS, "--isolation"),
    workdir: options.workdir,
    user: options.user,
    env: parsePairs(options.env ?? [], "--env", lookup),
    network: options.dangerousAllowHostNetwork ? "host" : network,
    limits: toLimits(options),
    ttlMs: options.ttl === undefined ? undefined : parseDuration(options.ttl, "--ttl"),
    idleTimeoutMs:
      options.idleTimeout === undefined ? undefined : parseDuration(options.idleTimeout, "--idle-timeout"),
    autoResume: options.autoResume,
    workspace: options.workspace,
    snapshotDestination: options.snapshotDestination,
    labels: parsePairs(options.label ?? [], "--label"),
    privileged: options.dangerousAllowPrivileged,
    history: options.history,
  };
}

export function toLimits(
  options: Pick<CreateOptions, "cpus" | "memory" | "pids" | "disk">,
): Partial<ResourceLimits> {
  return {
    ...(options.cpus === undefined
      ? {}
      : { cpus: parseNumber(options.cpus, "--cpus", { least: 0.01, most: 1024 }) }),
    ...(options.memory === undefined ? {} : { memoryBytes: parseBytes(options.memory, "--memory") }),
    ...(options.pids === undefined
      ? {}
      : { pids: parseNumber(options.pids, "--pids", { least: 1, most: 4_194_304, whole: true }) }),
    ...(options.disk === undefined ? {} : { diskBytes: parseBytes(options.disk, "--disk") }),
  };
}

export function oneOf<Choice extends string>(
  value: string | undefined,
  choices: readonly Choice[],
  option: string,
): Choice | undefined {
  if (value === undefined) return undefined;
  const choice = choices.find((each) => each === value);
  if (choice === undefined) {
    throw new AidoError("VALIDATION_ERROR", `${option} cannot be "${value}"`, {
      hint: `Choose one of: ${choices.join(", ")}.`,
      details: { option, value },
    });
  }
  return choice;
}

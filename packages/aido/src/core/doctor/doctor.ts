import { toAidoError } from "@aido/sdk/protocol";
import type { DriverCapabilities } from "../driver/driver.ts";
import { checkDriver } from "./check-driver.ts";
import { type Finding, failed, ok, warning } from "./finding.ts";
import { type ProbeOptions, ProbeSandbox } from "./probe-sandbox.ts";
import {
  probeDevices,
  probeFiles,
  probeNeighbour,
  probeNetwork,
  probePrivileges,
  probeProcesses,
} from "./probes.ts";

/** A pull goes on for as long as it takes when a sandbox is wanted; here nobody asked for the image. */
const IMAGE_LIMIT_MS = 20_000;

export interface DoctorOptions extends ProbeOptions {
  /** A directory of the host in which a file is put that no sandbox may see. */
  readonly canaryDirectory: string;
}

/**
 * What one driver can do on this machine, tried rather than believed: two sandboxes are started and looked out of.
 * Whatever fails is a finding; only an abort rejects.
 */
export async function doctor(options: DoctorOptions): Promise<Finding[]> {
  const { driver, signal } = options;
  let capabilities: DriverCapabilities;
  try {
    capabilities = await driver.capabilities(signal);
  } catch (thrown) {
    return [trouble("driver", thrown, signal)];
  }
  return [...checkDriver(capabilities), ...(await probe(options))];
}

async function probe(options: DoctorOptions): Promise<Finding[]> {
  const { driver, image, signal, clock } = options;
  const limit = AbortSignal.timeout(IMAGE_LIMIT_MS);
  try {
    await driver.ensureImage(image, {
      signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
    });
  } catch (thrown) {
    signal?.throwIfAborted();
    if (limit.aborted) {
      return [warning("start", `No sandbox was tried: getting the image ${image} takes too long`)];
    }
    const { message, hint } = toAidoError(thrown);
    return [warning("start", `No sandbox was tried: ${message}`, hint)];
  }
  try {
    const before = clock.now().getTime();
    await using sandbox = await ProbeSandbox.start(options);
    const tookMs = clock.now().getTime() - before;
    await using neighbour = await ProbeSandbox.start(options);
    return [
      ok("start", `a sandbox of ${image} was ready in ${tookMs} ms`),
      await attempt("privileges", () => probePrivileges(sandbox), signal),
      await attempt("files", () => probeFiles(sandbox, options.canaryDirectory), signal),
      await attempt("processes", () => probeProcesses(sandbox), signal),
      await attempt("devices", () => probeDevices(sandbox), signal),
      await attempt("network", () => probeNetwork(sandbox), signal),
      await attempt("neighbours", () => probeNeighbour(sandbox, neighbour), signal),
    ];
  } catch (thrown) {
    return [trouble("start", thrown, signal)];
  }
}

async function attempt(
  name: string,
  look: () => Promise<Finding>,
  signal: AbortSignal | undefined,
): Promise<Finding> {
  try {
    return await look();
  } catch (thrown) {
    return trouble(name, thrown, signal);
  }
}

function trouble(name: string, thrown: unknown, signal: AbortSignal | undefined): Finding {
  signal?.throwIfAborted();
  const { message, hint } = toAidoError(thrown);
  return failed(name, message, hint);
}

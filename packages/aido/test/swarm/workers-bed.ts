import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSwarmWorkers, type SwarmWorkers } from "../../src/compose/open-swarm-workers.ts";
import { loadProcessConfig } from "../../src/config/process-config.ts";
import type { Workers } from "../../src/core/swarm/workers/workers.ts";
import { makeLogger } from "../../src/log/make-logger.ts";
import { docker } from "../backends/docker-cli.ts";
import type { WorkersBed } from "./workers-contract.ts";

/** Reads all of its input before anything, as KIND of its environment says. */
const ADAPTER = `#!/bin/sh
task=$(cat)
case "$KIND" in
  echo) printf '%s\\n' "$task"; echo note >&2 ;;
  fail) exit 3 ;;
  wait) trap 'echo bye; exit 130' TERM; echo ready; while :; do sleep 0.05; done ;;
  script) eval "$SCRIPT" ;;
esac
`;

/** An image whose adapter is a shell script, as long as a suite lasts. */
export async function makeWorkerImage(host?: string): Promise<{ image: string } & AsyncDisposable> {
  const image = `aido-test:worker-${process.pid}-${randomBytes(3).toString("hex")}`;
  const code = Buffer.from(ADAPTER).toString("base64");
  const file = `FROM aido-test:busybox
RUN mkdir -p /opt/aimi && echo ${code} | base64 -d >/opt/aimi/acp-adapter && chmod 755 /opt/aimi/acp-adapter
`;
  const where = host === undefined ? {} : { host };
  await docker(["build", "-q", "--network", "none", "-t", image, "-"], { input: file, ...where });
  return {
    image,
    [Symbol.asyncDispose]: async () => {
      await docker(["rmi", "--no-prune", image], where);
    },
  };
}

export interface EngineBed extends WorkersBed {
  readonly dataDir: string;
  /** As `another`, with what it takes to close it. */
  open(): Promise<SwarmWorkers>;
}

/** Workers on the machine's engine with a data directory of their own. Disposing removes every worker. */
export async function makeEngineBed(image: string, host?: string): Promise<EngineBed> {
  const dataDir = await mkdtemp(join(tmpdir(), "aido-workers-"));
  const opened: SwarmWorkers[] = [];
  const open = async (): Promise<SwarmWorkers> => {
    const { config } = loadProcessConfig({ flags: { dataDir, logLevel: "error" } });
    const own = host === undefined ? config : { ...config, dockerHost: host };
    const each = await openSwarmWorkers({ config: own, logger: makeLogger(own) });
    opened.push(each);
    return each;
  };
  const { workers } = await open();
  return {
    workers,
    image,
    dataDir,
    name: `aimi-swarm-test-${process.pid}-${randomBytes(4).toString("hex")}`,
    open,
    another: async (): Promise<Workers> => (await open()).workers,
    [Symbol.asyncDispose]: async () => {
      for (const { name } of await workers.list()) await workers.remove(name);
      for (const each of opened) await each[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Driver } from "../../src/core/driver/driver.ts";
import { DockerDriver, type DockerDriverOptions } from "../../src/drivers/docker/docker-driver.ts";
import type { DriverBackend } from "../contract/driver-backend.ts";
import { removeCommitted } from "../contract/remove-committed.ts";
import { agentPath } from "./agent-path.ts";

export interface DockerBackend extends DriverBackend {
  readonly driver: DockerDriver;
  readonly scope: string;
  readonly options: DockerDriverOptions;
}

/** A Docker driver with a scope and a directory of its own. Disposing removes every container of that scope. */
export async function makeDockerBackend(
  options: Partial<DockerDriverOptions> & { image?: string } = {},
): Promise<DockerBackend> {
  const { image = "aido-test:busybox", ...rest } = options;
  const directory = await mkdtemp(join(tmpdir(), "aido-docker-test-"));
  const drivers: DockerDriver[] = [];
  const open = (scope: string) => {
    const driver = new DockerDriver(toOptions(scope));
    drivers.push(driver);
    return driver;
  };
  const toOptions = (scope: string): DockerDriverOptions => ({
    scope,
    agentPath: agentPath(),
    runDir: (id) => join(directory, "sandboxes", scope, id, "run"),
    hostsFile: join(directory, "hosts"),
    host: process.env["DOCKER_HOST"],
    ...rest,
  });
  const scope = newScope();
  const otherScope = newScope();
  const driver = open(scope);
  return {
    driver,
    scope,
    image,
    directory,
    options: toOptions(scope),
    reopen: async () => open(scope),
    otherScope: async (): Promise<Driver> => open(otherScope),
    [Symbol.asyncDispose]: async () => {
      for (const each of [open(scope), open(otherScope)]) {
        for (const container of await each.list()) await each.remove(container.sandboxId);
        await removeCommitted(each);
      }
      for (const each of drivers) await each.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function newScope(): string {
  return `test-${randomBytes(6).toString("hex")}`;
}

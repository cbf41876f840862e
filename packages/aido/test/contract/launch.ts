import type { Container, ContainerSpec } from "../../src/core/driver/driver.ts";
import { type DriverBackend, specOf } from "./driver-backend.ts";
import { SupervisorClient } from "./supervisor-client.ts";

export interface Launched {
  readonly id: string;
  readonly container: Container;
  readonly token: Buffer;
  readonly client: SupervisorClient;
  /** Runs a shell script as the sandbox's own user. */
  sh(script: string): ReturnType<SupervisorClient["exec"]>;
}

/** Creates, starts, claims and configures a sandbox. */
export async function launch(
  backend: DriverBackend,
  changes: Partial<ContainerSpec> & { deadlineMs?: number } = {},
): Promise<Launched> {
  const { deadlineMs, ...rest } = changes;
  const spec = specOf(backend, rest);
  const container = await backend.driver.create(spec);
  await backend.driver.start(spec.sandboxId);
  const token = SupervisorClient.newToken();
  const client = await SupervisorClient.open(backend.driver, spec.sandboxId, token);
  await client.configure({
    user: container.user,
    workdir: spec.workdir,
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
  });
  return {
    id: spec.sandboxId,
    container,
    token,
    client,
    sh: (script) => client.exec(["/bin/sh", "-c", script]),
  };
}

import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalDriver, type LocalDriverOptions } from "../../src/drivers/local/local-driver.ts";
import type { DriverBackend } from "../contract/driver-backend.ts";
import { removeCommitted } from "../contract/remove-committed.ts";
import { agentPath } from "./agent-path.ts";

export interface LocalBackend extends DriverBackend {
  readonly driver: LocalDriver;
  readonly options: LocalDriverOptions;
}

/** How sandboxes are made; without user namespaces only root can. */
export type LocalMode = Pick<LocalDriverOptions, "userNamespaces" | "controlGroups">;

/** Every way that local sandboxes are made on this machine; suites run once for each. */
export const LOCAL_MODES: readonly { name: string; make: () => Promise<LocalBackend> }[] = [
  { name: "local", make: () => makeLocalBackend() },
  ...(process.getuid?.() === 0
    ? [{ name: "local without user namespaces", make: () => makeLocalBackend({ userNamespaces: false }) }]
    : []),
];

/** Whether sandboxes of this backend have a user namespace. */
export async function hasUserNamespaces(backend: LocalBackend): Promise<boolean> {
  const { warnings } = await backend.driver.capabilities();
  return !warnings.some((text) => text.startsWith("User namespaces are refused"));
}

/** A local driver with a scope and a directory of its own. Disposing removes every sandbox in it. */
export async function makeLocalBackend(mode: LocalMode = {}): Promise<LocalBackend> {
  const directory = await mkdtemp(join(tmpdir(), "aido-local-test-"));
  const toOptions = (): LocalDriverOptions => {
    const scope = `test-${randomBytes(6).toString("hex")}`;
    return {
      scope,
      root: join(directory, scope),
      agentPath: agentPath(),
      searchPath: process.env["PATH"] ?? "",
      ...mode,
    };
  };
  const options = toOptions();
  const other = toOptions();
  return {
    driver: new LocalDriver(options),
    options,
    image: "host",
    directory,
    reopen: async () => new LocalDriver(options),
    otherScope: async () => new LocalDriver(other),
    [Symbol.asyncDispose]: async () => {
      for (const each of [new LocalDriver(options), new LocalDriver(other)]) {
        for (const container of await each.list()) await each.remove(container.sandboxId);
        await removeCommitted(each);
      }
      await rm(directory, { recursive: true, force: true });
    },
  };
}

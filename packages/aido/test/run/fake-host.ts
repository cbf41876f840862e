import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CaptureLimits } from "../../src/core/run/capture-outputs.ts";
import { createFakeDriver, type FakeDriver } from "../../src/drivers/fake/fake-driver.ts";
import type { FakeProgram } from "../../src/drivers/fake/fake-program.ts";
import { MemoryStore } from "../../src/stores/memory/memory-store.ts";
import { makeRunHost, type RunHost } from "./run-harness.ts";

/**
 * Understands scripts of one command per line: `out TEXT`, `err TEXT`, `write PATH TEXT`, `read PATH`, `link PATH
 * TARGET`, `sleep SECONDS`, `env NAME`, `exit CODE`, `where`.
 */
export const interpreter: FakeProgram = async (process) => {
  const [program, path = ""] = process.argv;
  const script = (await process.files.readFile("/", path)).toString();
  for (const line of script.split("\n")) {
    const [command = "", first = "", ...rest] = line.split(" ");
    const text = [first, ...rest].join(" ");
    if (command === "out") await process.stdout(`${text}\n`);
    else if (command === "err") await process.stderr(`${text}\n`);
    else if (command === "write") await process.files.writeFile("/", first, `${rest.join(" ")}\n`);
    else if (command === "read") await process.stdout(await process.files.readFile("/", first));
    else if (command === "link") await process.files.symlink("/", first, rest.join(" "));
    else if (command === "sleep") await process.sleep(Number(first) * 1000);
    else if (command === "env") await process.stdout(`${process.env[first] ?? ""}\n`);
    else if (command === "exit") return Number(first);
    else if (command === "where") await process.stdout(`${program} ${process.cwd}\n`);
  }
  return 0;
};

export interface FakeHost extends RunHost, AsyncDisposable {
  readonly driver: FakeDriver;
  /** Another process on the same sandboxes. */
  another(): RunHost;
  /** One that dies when `mayGoOn` says so; it is not closed at the end, as the dead are not. */
  mortal(mayGoOn: () => boolean): RunHost;
}

export async function makeFakeHost(
  options: {
    images?: readonly string[];
    captureLimits?: CaptureLimits;
    dangerous?: boolean;
    programs?: readonly string[];
  } = {},
): Promise<FakeHost> {
  const directory = await mkdtemp(join(tmpdir(), "aido-run-"));
  const driver = createFakeDriver({
    images: options.images,
    programs: Object.fromEntries(
      (options.programs ?? ["python3", "node", "bash"]).map((name) => [name, interpreter]),
    ),
    capabilities:
      options.dangerous === true ? { networks: ["none", "bridge", "host"], privileged: true } : undefined,
  });
  const store = new MemoryStore();
  const hosts: RunHost[] = [];
  const another = () => {
    const host = makeRunHost({
      driver,
      store,
      directory,
      ...(options.captureLimits === undefined ? {} : { captureLimits: options.captureLimits }),
    });
    hosts.push(host);
    return host;
  };
  return {
    ...another(),
    driver,
    another,
    mortal: (mayGoOn) => makeRunHost({ driver, store, directory, mayGoOn }),
    [Symbol.asyncDispose]: async () => {
      for (const host of hosts) await host.close();
      await driver.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

import { userInfo } from "node:os";
import { chooseDriver, type DriverContext, whyDockerIsSilent } from "./compose/choose-driver.ts";
import { keepOutOfGit } from "./compose/keep-out-of-git.ts";
import { makeDirectory } from "./compose/make-directory.ts";
import { refuseCarried } from "./compose/refuse-carried.ts";
import { wire } from "./compose/wire.ts";
import type { Config } from "./config/config.ts";
import type { DriverChoice } from "./config/settings.ts";
import { ANONYMOUS } from "./core/access/owner-label.ts";
import type { Clock } from "./core/clock.ts";
import type { CoreAido } from "./core/core-aido.ts";
import type { LimitsOf } from "./core/limits/owner-quotas.ts";
import type { Logger } from "./core/logger.ts";
import type { FirstAnswers } from "./drivers/docker/first-questions.ts";
import type { SqliteStore } from "./stores/sqlite/sqlite-store.ts";

export interface OpenOptions {
  readonly config: Config;
  readonly logger: Logger;
  /** Told about long steps that belong to no request, such as setting up a driver. */
  readonly onProgress?: ((step: string) => void) | undefined;
  /** A sandbox is about to be started: what that needs to know is asked for at once. */
  readonly launches?: boolean | undefined;
  /** What the engine answers, when it was asked even before. */
  readonly answers?: FirstAnswers | undefined;
  /** The sandbox that is asked for: with the driver `auto`, the one that has it is taken. */
  readonly sandbox?: string | undefined;
  /** Who acts, for the evidence; this process's user by default. */
  readonly actor?: string | undefined;
  /** Holds owners to their quotas, as a server does. */
  readonly quotas?: boolean | undefined;
  /** The machine's own by default. */
  readonly clock?: Clock | undefined;
}

/** Aido in this process. Knows every adapter and loads only those that are used. */
export async function openAido(options: OpenOptions): Promise<CoreAido> {
  return (await openWithStore(options)).aido;
}

/** As `openAido`, with the records that only a server needs. */
export async function openWithStore(options: OpenOptions): Promise<{ aido: CoreAido; store: SqliteStore }> {
  const { config } = options;
  const { DataDir } = await import("./core/data-dir.ts");
  const dataDir = new DataDir(config.dataDir);
  await refuseCarried(dataDir.root);
  // The engine answers while the store is opened.
  const silence = config.driver === "auto" ? whyDockerIsSilent(config) : Promise.resolve(undefined);
  silence.catch(() => undefined);
  const context = { config, dataDir, onProgress: options.onProgress, answers: options.answers };
  // Which driver has a sandbox that is named, only the store can tell.
  const isNew = options.launches === true && options.sandbox === undefined;
  const asked = isNew ? await askEarly(context, silence) : undefined;
  const store = await openStore(dataDir.database);
  keepOutOfGit(dataDir.root);
  try {
    const driver =
      asked?.driver ?? (await chooseDriver(context, silence, () => driverOf(store, options.sandbox)));
    const { capabilities } = asked ?? {};
    const actor = options.actor ?? userName();
    const limitsOf = options.quotas === true ? await quotasOf(config, store) : undefined;
    const aido = await wire({ ...options, actor, capabilities, limitsOf }, { driver, store, dataDir });
    // What a killed process left half done is finished by whoever comes next; two queries when there is nothing.
    await aido.runs.recover();
    return { aido, store };
  } catch (thrown) {
    await store.close();
    throw thrown;
  }
}

async function quotasOf({ serve }: Config, { apiKeys }: SqliteStore): Promise<LimitsOf> {
  return (await import("./compose/owner-limits.ts")).ownerLimits(serve, apiKeys);
}

/** What a launch has to know of the driver, asked before anything else: opening the store takes as long as the answer. */
async function askEarly(context: DriverContext, silence: Promise<string | undefined>) {
  await makeDirectory(context.dataDir.root);
  const driver = await chooseDriver(context, silence);
  const capabilities = driver.capabilities();
  // Told to whoever launches.
  capabilities.catch(() => undefined);
  // Questions leave with the next turns of the loop.
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  return { driver, capabilities };
}

/** The driver of one sandbox; undefined when none is meant, or not one alone. */
async function driverOf(store: SqliteStore, sandbox: string | undefined): Promise<string | undefined> {
  if (sandbox === undefined) return undefined;
  const own = await store.sandboxes.find(sandbox, 2, ANONYMOUS);
  const [first, second] = own.length > 0 ? own : await store.sandboxes.find(sandbox, 2);
  return second === undefined ? first?.driver : undefined;
}

/** Aido as configured for this process, for programs that use it as a library. */
export async function openDefaultAido(
  options: { dataDir?: string; driver?: DriverChoice } = {},
): Promise<CoreAido> {
  const { loadProcessConfig } = await import("./config/process-config.ts");
  const { makeLogger } = await import("./log/make-logger.ts");
  const { config } = loadProcessConfig({ flags: options });
  return await openAido({ config, logger: makeLogger(config) });
}

export async function openStore(file: string): Promise<SqliteStore> {
  const { SqliteStore } = await import("./stores/sqlite/sqlite-store.ts");
  return new SqliteStore(file);
}

/** A user without an entry in the password file still has a number. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid:${process.getuid?.() ?? "unknown"}`;
  }
}

import { join } from "node:path";
import type { Aido } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import type { FirstAnswers } from "../compose/ask-engine.ts";
import type { ConfigSources, LoadedConfig } from "../config/load-config.ts";
import { EXIT } from "./commands/exit-code.ts";
import type { CliContext, GlobalOptions } from "./context.ts";
import { isBrokenPipe } from "./output/byte-sink.ts";
import { FdSink } from "./output/fd-sink.ts";
import { type ErrorOutput, printError } from "./output/print-error.ts";
import { ProgressLine, type ProgressMode } from "./output/progress-line.ts";
import { ProcessKeyboard } from "./process-keyboard.ts";
import { ProcessSignals } from "./process-signals.ts";
import { runCli } from "./run-cli.ts";
import { startInBackground } from "./start-in-background.ts";

export interface Invocation {
  argv: readonly string[];
  version: string;
  env: Readonly<Record<string, string | undefined>>;
  /** What the machine's own engine was asked before this was loaded. */
  ahead?: FirstAnswers | undefined;
}

const STDOUT = 1;
const STDERR = 2;

/** Joins the command line to a real process and ends it with the exit code. */
export async function runProcess(process: NodeJS.Process, invocation: Invocation): Promise<void> {
  const stdout = new FdSink(STDOUT, () => (process.stdout.isTTY ? process.stdout.columns || 80 : undefined));
  const stderr = new FdSink(STDERR, () => (process.stderr.isTTY ? process.stderr.columns || 80 : undefined));
  const signals = new ProcessSignals(process);
  // What nobody awaited is a bug; it still ends with a sentence.
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, (thrown: unknown) => {
      if (isBrokenPipe(thrown)) return process.exit(0);
      signals.restoreTerminal();
      void printError(thrown, { stdout, stderr, json: false, verbose: true }).finally(() =>
        process.exit(EXIT.aidoFailed),
      );
    });
  }
  const cwd = await currentDirectory(process, { stdout, stderr });
  let opened: Promise<Aido> | undefined;
  let { ahead } = invocation;
  const makeContext = async (given: GlobalOptions): Promise<CliContext> => {
    const config = await loadConfig(given, { env: invocation.env, cwd });
    const globals = { ...given, json: given.json || config.asksForJson };
    const progress = new ProgressLine(stderr, progressMode(globals, stderr.isTerminal));
    const backupOf = (command: string, file: string) => {
      const { server, dataDir } = config.get().config;
      if (server !== undefined) throw localOnly(command, server);
      return { dataDir, file, version: invocation.version, now: new Date() };
    };
    return {
      globals,
      stdin: new ProcessKeyboard(() => process.stdin),
      stdout,
      stderr,
      progress,
      signals,
      env: invocation.env,
      cwd,
      version: invocation.version,
      now: () => new Date(),
      open: (options) => {
        opened ??= import("./open-backend.ts").then(({ openBackend }) =>
          openBackend(config.get().config, {
            ...options,
            onProgress: progress.show,
            ahead: invocation.ahead,
          }),
        );
        return opened;
      },
      doctor: async () => {
        const { config: known } = config.get();
        return known.server === undefined
          ? (await import("./doctor-report.ts")).doctorReport(known)
          : (await import("./server-report.ts")).serverReport(known, known.server);
      },
      serve: async (flags) => {
        // AIDO_URL may well be set where a server is started: it is for other commands, and says nothing here.
        if (given.server !== undefined) throw localOnly("serve", given.server);
        const { loadConfig: load } = await import("../config/load-config.ts");
        const [{ openServer }, { makeLogger }] = await Promise.all([
          import("../compose/open-server.ts"),
          import("../log/make-logger.ts"),
        ]);
        // A server says what it does; a command line is silent unless something is wrong.
        const serving = load({
          env: { AIDO_LOG_LEVEL: "info", ...invocation.env },
          cwd,
          configPath: given.config,
          flags: {
            driver: given.driver,
            dataDir: given.dataDir,
            "serve.host": flags.host,
            "serve.port": flags.port,
            "serve.sshPort": flags.sshPort,
          },
        }).config;
        const logger = makeLogger(serving);
        // Whoever reads the log may go away; the server stays.
        process.stderr.on("error", () => undefined);
        return openServer({
          config: serving,
          logger,
          version: invocation.version,
          onProgress: progress.show,
        });
      },
      withKeys: async (work) => {
        const { server } = config.get().config;
        if (server !== undefined) throw localOnly("key", server);
        const [{ openStore }, { DataDir }] = await Promise.all([
          import("../compose.ts"),
          import("../core/data-dir.ts"),
        ]);
        const store = await openStore(new DataDir(config.get().config.dataDir).database);
        try {
          return await work(store.apiKeys);
        } finally {
          await store.close();
        }
      },
      withSwarmImages: async (work) => {
        const { config: known } = config.get();
        if (known.server !== undefined) throw localOnly("image build --swarm", known.server);
        const { openSwarmImages } = await import("../compose/open-swarm-images.ts");
        await using images = await openSwarmImages({ config: known, env: invocation.env });
        return await work(images);
      },
      withWorkers: async (work, project) => {
        const { config: given, settings } = config.get();
        const isDefault = settings.some(({ key, source }) => key === "dataDir" && source === "default");
        const known =
          project !== undefined && isDefault ? { ...given, dataDir: join(project, ".aido") } : given;
        if (known.server !== undefined) throw localOnly("swarm", known.server);
        const [{ openSwarmWorkers }, { makeLogger }, { isSystemEngine }] = await Promise.all([
          import("../compose/open-swarm-workers.ts"),
          import("../log/make-logger.ts"),
          import("../compose/ask-engine.ts"),
        ]);
        // They are of the start: whoever opens the engine once more asks it again.
        const answers = ahead !== undefined && (await isSystemEngine(known)) ? ahead : undefined;
        ahead = undefined;
        const logger = makeLogger(known);
        const options = { config: known, logger, onProgress: progress.show, answers };
        await using opened = await openSwarmWorkers(options);
        return await work(opened.workers);
      },
      startInBackground: (argv, log) => startInBackground(process, argv, log),
      backUp: async (file) => (await import("../compose/backup.ts")).backUp(backupOf("backup", file)),
      restore: async (file) => (await import("../compose/backup.ts")).restore(backupOf("restore", file)),
      settings: () => config.get().settings,
    };
  };
  const code = await runCli(invocation.argv, { version: invocation.version, makeContext });
  await (await opened?.catch(() => undefined))?.close();
  // Everything was written and closed; a terminal or a pipe on standard input must not hold the process.
  process.exit(code);
}

/** It may have been removed beneath this process, and nothing can be said of files then. */
async function currentDirectory(
  process: NodeJS.Process,
  output: Pick<ErrorOutput, "stdout" | "stderr">,
): Promise<string> {
  try {
    return process.cwd();
  } catch (cause) {
    const gone = new AidoError("FILE_NOT_FOUND", "The current directory is gone", {
      hint: "Go to one that is there, for example with `cd`.",
      cause,
    });
    await printError(gone, { ...output, json: false, verbose: false });
    return process.exit(EXIT.aidoFailed);
  }
}

function localOnly(command: string, server: string): AidoError {
  return new AidoError("UNSUPPORTED", `aido ${command} works on this machine only, not on ${server}`, {
    hint: "Run it on the server's machine, without --server and with AIDO_URL unset.",
    details: { server },
  });
}

/** A wrong configuration is an error of the commands that need one; help and completion work without. */
async function loadConfig(
  globals: GlobalOptions,
  surroundings: Pick<ConfigSources, "env" | "cwd">,
): Promise<{ asksForJson: boolean; get: () => LoadedConfig }> {
  const { loadConfig: load } = await import("../config/load-config.ts");
  const { driver, dataDir, server, verbose } = globals;
  try {
    const loaded = load({
      ...surroundings,
      configPath: globals.config,
      flags: { driver, dataDir, server, logLevel: verbose ? "info" : undefined },
    });
    return { asksForJson: loaded.config.json, get: () => loaded };
  } catch (thrown) {
    return {
      asksForJson: false,
      get: () => {
        throw thrown;
      },
    };
  }
}

function progressMode(globals: GlobalOptions, terminal: boolean): ProgressMode {
  if (globals.quiet || (globals.json && !globals.verbose)) return "quiet";
  if (terminal) return "redraw";
  return globals.verbose ? "lines" : "quiet";
}

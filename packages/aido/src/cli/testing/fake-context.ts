import type { Aido } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import type { SwarmImages } from "../../core/swarm/image/swarm-images.ts";
import type { Workers } from "../../core/swarm/workers/workers.ts";
import type { CliContext, DoctorReport, GlobalOptions, Setting } from "../context.ts";
import { MemorySink } from "../output/memory-sink.ts";
import { ProgressLine } from "../output/progress-line.ts";
import { FakeKeyboard } from "./fake-keyboard.ts";
import { FakeSignals } from "./fake-signals.ts";

export interface FakeContext extends CliContext {
  readonly stdout: MemorySink;
  readonly stderr: MemorySink;
  readonly stdin: FakeKeyboard;
  readonly signals: FakeSignals;
}

export interface FakeContextOptions {
  globals?: Partial<GlobalOptions>;
  stdout?: MemorySink;
  stderr?: MemorySink;
  stdin?: FakeKeyboard;
  backend?: Aido;
  swarmImages?: SwarmImages;
  workers?: Workers;
  doctor?: DoctorReport;
  settings?: readonly Setting[];
  env?: Record<string, string>;
  cwd?: string;
  now?: Date;
  startInBackground?: CliContext["startInBackground"];
}

/** A command's surroundings in memory. */
export function fakeContext(options: FakeContextOptions = {}): FakeContext {
  const stderr = options.stderr ?? new MemorySink();
  return {
    globals: {
      json: false,
      verbose: false,
      quiet: false,
      driver: undefined,
      dataDir: undefined,
      config: undefined,
      server: undefined,
      ...options.globals,
    },
    stdin: options.stdin ?? new FakeKeyboard(),
    stdout: options.stdout ?? new MemorySink(),
    stderr,
    progress: new ProgressLine(stderr, "quiet"),
    signals: new FakeSignals(),
    env: options.env ?? {},
    cwd: options.cwd ?? "/",
    version: "0.0.0",
    now: () => options.now ?? new Date("2026-01-01T00:00:00Z"),
    doctor: () => Promise.resolve(options.doctor ?? { ok: true, driver: "fake", checks: [] }),
    serve: () => Promise.reject(new Error("This test has no server")),
    withKeys: () => Promise.reject(new Error("This test has no keys")),
    withSwarmImages: (work) =>
      options.swarmImages === undefined
        ? Promise.reject(new Error("This test has no images"))
        : work(options.swarmImages),
    withWorkers: (work) =>
      options.workers === undefined
        ? Promise.reject(new AidoError("RUNTIME_UNAVAILABLE", "This test has no engine"))
        : work(options.workers),
    startInBackground: (...args) => {
      if (options.startInBackground !== undefined) return options.startInBackground(...args);
      throw new Error("This test starts no process");
    },
    backUp: () => Promise.reject(new Error("This test has no data")),
    restore: () => Promise.reject(new Error("This test has no data")),
    settings: () => options.settings ?? [],
    open: () =>
      options.backend === undefined
        ? Promise.reject(new Error("This test has no backend"))
        : Promise.resolve(options.backend),
  };
}

import type {
  Agents,
  Aido,
  Batches,
  Execs,
  Files,
  Gc,
  History,
  Images,
  Jobs,
  Reaper,
  Runs,
  Sandboxes,
  Snapshots,
  Ssh,
  Workflows,
  Workspaces,
} from "@aido/sdk";
import {
  AidoError,
  type EvidenceEntry,
  type EvidenceVerdict,
  type ExecInfo,
  type SandboxInfo,
} from "@aido/sdk/protocol";

/** The parts a test needs; calling any other part is an error that names it. */
export interface FakeBackendParts {
  sandboxes?: Partial<Sandboxes>;
  execs?: Partial<Execs>;
  files?: Partial<Files>;
  images?: Partial<Images>;
  runs?: Partial<Runs>;
  history?: Partial<History>;
  snapshots?: Partial<Snapshots>;
  jobs?: Partial<Jobs>;
  batches?: Partial<Batches>;
  workflows?: Partial<Workflows>;
  reaper?: Partial<Reaper>;
  metrics?: Readonly<Record<string, number>>;
  agents?: Partial<Agents>;
  ssh?: Partial<Ssh>;
  gc?: Partial<Gc>;
  workspaces?: Partial<Workspaces>;
  evidence?: { entries?: readonly EvidenceEntry[]; verdicts?: readonly EvidenceVerdict[] };
}

export function fakeBackend(parts: FakeBackendParts = {}): Aido {
  const { entries = [], verdicts = [] } = parts.evidence ?? {};
  return {
    sandboxes: only("sandboxes", parts.sandboxes),
    execs: only("execs", parts.execs),
    files: only("files", parts.files),
    images: only("images", parts.images),
    evidence: {
      async *read() {
        yield* entries;
      },
      verify: () => Promise.resolve(verdicts),
    },
    runs: only("runs", parts.runs),
    history: only("history", parts.history),
    snapshots: only("snapshots", parts.snapshots),
    jobs: only("jobs", parts.jobs),
    batches: only("batches", parts.batches),
    workflows: only("workflows", parts.workflows),
    reaper: only("reaper", parts.reaper),
    metrics: async () => parts.metrics ?? {},
    agents: only("agents", parts.agents),
    ssh: only("ssh", parts.ssh),
    gc: only("gc", parts.gc),
    workspaces: only("workspaces", parts.workspaces),
    close: () => Promise.resolve(),
  };
}

function only<Part extends object>(name: string, part: Partial<Part> | undefined): Part {
  return new Proxy(part ?? {}, {
    get(target, key) {
      if (key in target) return Reflect.get(target, key);
      throw new Error(`This test has no ${name}.${String(key)}`);
    },
  }) as Part;
}

export function sandboxInfo(changes: Partial<SandboxInfo> = {}): SandboxInfo {
  return {
    id: "abcd1234",
    name: undefined,
    profile: "aido",
    image: "python:3.12-slim",
    driver: "fake",
    isolation: "container",
    state: "running",
    endReason: undefined,
    containerId: "c0ffee",
    workdir: "/work",
    network: "none",
    limits: {
      cpus: 1,
      memoryBytes: 512 * 1024 ** 2,
      pids: 100,
      diskBytes: 0,
      openFiles: 1024,
      outputBytes: 0,
    },
    labels: {},
    createdAt: new Date("2025-12-31T23:50:00Z"),
    startedAt: new Date("2025-12-31T23:50:00Z"),
    stoppedAt: undefined,
    expiresAt: new Date("2026-01-01T00:10:00Z"),
    idleTimeoutMs: 0,
    autoResume: false,
    lastActivityAt: new Date("2025-12-31T23:50:00Z"),
    sidecarUrl: undefined,
    tier: undefined,
    tierSince: undefined,
    ...changes,
  };
}

export function execInfo(changes: Partial<ExecInfo> = {}): ExecInfo {
  return {
    id: "exec1",
    sandboxId: "abcd1234",
    argv: ["true"],
    status: "exited",
    exitCode: 0,
    signal: undefined,
    startedAt: new Date("2026-01-01T00:00:00Z"),
    endedAt: new Date("2026-01-01T00:00:01Z"),
    durationMs: 1000,
    stdoutBytes: 0,
    stderrBytes: 0,
    ...changes,
  };
}

export function notFound(reference: string): AidoError {
  return new AidoError("CONTAINER_NOT_FOUND", `No sandbox is called ${reference}`, {
    hint: "Type `aido ls`.",
  });
}

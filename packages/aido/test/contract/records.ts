import type { ExecRecord, SandboxRecord, Store } from "../../src/core/store/store.ts";
import { NO_TIER } from "../../src/core/tier/tier-fields.ts";

export const START = Date.UTC(2026, 0, 1);

export function sandboxRecord(id: string, changes: Partial<SandboxRecord> = {}): SandboxRecord {
  return {
    id,
    name: undefined,
    profile: "aido",
    image: "python:3.12-slim",
    driver: "fake",
    isolation: "container",
    state: "pending",
    endReason: undefined,
    containerId: undefined,
    workdir: "/work",
    user: undefined,
    env: {},
    imageEnv: {},
    network: "none",
    limits: { cpus: 1, memoryBytes: 512, pids: 100, diskBytes: 0, openFiles: 1024, outputBytes: 0 },
    privileged: false,
    history: true,
    permissions: undefined,
    labels: {},
    mounts: [],
    ttlMs: 0,
    supervisorToken: "00".repeat(32),
    tokenHash: undefined,
    createdAt: new Date(START),
    startedAt: undefined,
    stoppedAt: undefined,
    expiresAt: undefined,
    idleTimeoutMs: 0,
    autoResume: false,
    lastActivityAt: new Date(START),
    ...NO_TIER,
    ...changes,
  };
}

export function execRecord(sandboxId: string, id: string, changes: Partial<ExecRecord> = {}): ExecRecord {
  return {
    id,
    sandboxId,
    argv: ["sh", "-c", "exit 3"],
    status: "running",
    exitCode: undefined,
    signal: undefined,
    startError: undefined,
    fingerprint: undefined,
    startedAt: new Date(START),
    endedAt: undefined,
    stdoutBytes: 0,
    stderrBytes: 0,
    unrecorded: false,
    ...changes,
  };
}

export interface StoreUnderTest extends AsyncDisposable {
  store: Store;
}

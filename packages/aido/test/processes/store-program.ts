import { mkdirSync } from "node:fs";
import { ClockJumps } from "../../src/core/clock-jumps.ts";
import { DataDir } from "../../src/core/data-dir.ts";
import { EvidenceLog } from "../../src/core/evidence/evidence-log.ts";
import type { Logger } from "../../src/core/logger.ts";
import { LinuxProcessIdentity } from "../../src/core/process-identity.ts";
import { SandboxClaims } from "../../src/core/sandbox/sandbox-claims.ts";
import { SystemClock } from "../../src/core/system-clock.ts";
import { SqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { execRecord, sandboxRecord } from "../contract/records.ts";

/**
 * Works on a store until it is killed. Each line on standard output tells of something that the store has confirmed.
 * Arguments: what to do, the data directory, a name for this process.
 */
const [mode = "", root = "", name = ""] = process.argv.slice(2);
const dataDir = new DataDir(root);
const store = new SqliteStore(dataDir.database);
const clock = new SystemClock();
const tell = (line: string) => process.stdout.write(`${line}\n`);

if (mode === "records") {
  for (let index = 0; ; index++) {
    const id = `${name}-${index}`;
    await store.sandboxes.insert(sandboxRecord(id, { name: id, labels: { by: name } }));
    tell(`${id} pending`);
    await store.execs.insert(execRecord(id, "e1"));
    await store.sandboxes.transition(id, "pending", "running", { containerId: `c-${id}` });
    tell(`${id} running`);
    await store.sandboxes.transition(id, "running", "stopped", { endReason: "stopped" });
    tell(`${id} stopped`);
    if (await store.sandboxes.transition(`race-${index}`, "pending", "running", { containerId: name })) {
      tell(`race-${index} won`);
    }
    // Standard output is written behind our back; the kill comes between any two steps.
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
} else if (mode === "evidence") {
  const fail = (_fields: object, message: string) => {
    throw new Error(message);
  };
  const ignore = () => undefined;
  const logger: Logger = { debug: ignore, info: ignore, warn: ignore, error: fail, child: () => logger };
  const log = new EvidenceLog({ heads: store.evidence, dataDir, clock, logger, actor: name });
  mkdirSync(dataDir.sandbox("box"), { recursive: true });
  for (let index = 0; ; index++) {
    await log.append("box", "test.event", { index });
    tell(String(index));
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
} else if (mode === "claim") {
  const processes = new LinuxProcessIdentity(name);
  const claims = new SandboxClaims({ store, clock, jumps: new ClockJumps(clock), processes });
  await claims.hold("box", "launch", async () => {
    tell("held");
    await clock.sleep(600_000);
  });
}

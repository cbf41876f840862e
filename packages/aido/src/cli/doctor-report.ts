import { accessSync, constants, existsSync } from "node:fs";
import { mkdtemp, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { toAidoError } from "@aido/sdk/protocol";
import type { Config } from "../config/config.ts";
import type { Driver } from "../core/driver/driver.ts";
import type { DoctorCheck, DoctorReport } from "./context.ts";
import { formatBytes } from "./output/format.ts";

const ANSWER_LIMIT_MS = 60_000;
const TMP_HINT = "Make room in it, or set TMPDIR to a directory that can be written.";
const START_HINT = "Start it, for example with: sudo systemctl start docker";
const GROUP_HINT = "Join the docker group with `sudo usermod -aG docker $USER` and log in again.";
const LITTLE_DISK_BYTES = 1024 ** 3;

/** Asks every driver what it can do here. Makes nothing that stays. */
export async function doctorReport(config: Config): Promise<DoctorReport> {
  const { checkMachine } = await import("../core/doctor/check-machine.ts");
  const checks: DoctorCheck[] = [
    ...checkMachine(),
    dataDirectory(config.dataDir),
    await disk(config.dataDir),
  ];
  let scratch: string;
  try {
    scratch = await mkdtemp(join(tmpdir(), "aido-doctor-"));
  } catch (thrown) {
    const why = failed(
      "temporary",
      `No temporary directory can be made: ${(thrown as Error).message}`,
      TMP_HINT,
    );
    return { ok: false, driver: undefined, checks: [...checks, why] };
  }
  try {
    const { openDocker, openLocal, whyDockerIsSilent } = await import("../compose/choose-driver.ts");
    const { DataDir } = await import("../core/data-dir.ts");
    const context = { config, dataDir: new DataDir(scratch) };
    const silence = await whyDockerIsSilent(config);
    const docker =
      silence === undefined
        ? await ask("docker", () => openDocker(context), { config, scratch })
        : [failed("docker", silence, / (EACCES|EPERM)\b/.test(silence) ? GROUP_HINT : START_HINT)];
    const local = await ask("local", () => openLocal(context), { config, scratch });
    const usable = [...(works(docker) ? ["docker"] : []), ...(works(local) ? ["local"] : [])];
    const driver = config.driver === "auto" ? usable[0] : usable.find((name) => name === config.driver);
    const soften = (list: DoctorCheck[], name: string) =>
      name === driver || driver === undefined ? list : list.map(asWarning);
    return {
      ok: driver !== undefined,
      driver,
      checks: [...checks, ...soften(docker, "docker"), ...soften(local, "local")],
    };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Starts sandboxes and looks out of them, rather than believing what a driver says of itself. */
async function ask(
  name: "docker" | "local",
  open: () => Promise<Driver>,
  { config, scratch }: { config: Config; scratch: string },
): Promise<DoctorCheck[]> {
  let driver: Driver | undefined;
  try {
    driver = await open();
    const [{ doctor }, { SystemClock }, { makeLogger }, { PROFILE_DEFAULTS }] = await Promise.all([
      import("../core/doctor/doctor.ts"),
      import("../core/system-clock.ts"),
      import("../log/make-logger.ts"),
      import("../core/sandbox/profiles.ts"),
    ]);
    const findings = await doctor({
      driver,
      image: name === "local" ? "host" : (config.defaultImage ?? PROFILE_DEFAULTS[config.profile].image),
      clock: new SystemClock(),
      logger: makeLogger(config),
      canaryDirectory: scratch,
      signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
    });
    return findings.map((finding) => ({
      ...finding,
      name: finding.name === "driver" ? name : `${name} ${finding.name}`,
    }));
  } catch (thrown) {
    const { message, hint } = toAidoError(thrown);
    return [failed(name, message, hint)];
  } finally {
    await driver?.close();
  }
}

/** A driver that is not needed, because another one works, is no failure. */
function asWarning(check: DoctorCheck): DoctorCheck {
  return check.status === "failed" ? { ...check, status: "warning" } : check;
}

function works(checks: readonly DoctorCheck[]): boolean {
  return checks.every(({ status }) => status !== "failed");
}

function dataDirectory(path: string): DoctorCheck {
  let existing = path;
  while (!existsSync(existing) && dirname(existing) !== existing) existing = dirname(existing);
  try {
    accessSync(existing, constants.W_OK | constants.X_OK);
    return ok("data", existing === path ? path : `${path} (made when it is needed)`);
  } catch {
    return failed("data", `${path} cannot be written`, "Choose another place with --data-dir.");
  }
}

async function disk(path: string): Promise<DoctorCheck> {
  let existing = path;
  while (!existsSync(existing) && dirname(existing) !== existing) existing = dirname(existing);
  const { bavail, bsize } = await statfs(existing);
  const message = `${formatBytes(bavail * bsize)} free`;
  return bavail * bsize < LITTLE_DISK_BYTES
    ? { name: "disk", status: "warning", message, hint: "Free some space: sandboxes and images need it." }
    : ok("disk", message);
}

function ok(name: string, message: string): DoctorCheck {
  return { name, status: "ok", message };
}

function failed(name: string, message: string, hint?: string): DoctorCheck {
  return { name, status: "failed", message, hint };
}

import { readFileSync, readlinkSync } from "node:fs";

/** Names this process so that another one on the same machine can tell whether it still lives. */
export interface ProcessIdentity {
  readonly self: string;
  /** False also when it cannot be told, as for a process of another machine or from before a reboot. */
  isDead(holder: string): boolean;
  /** False also when it cannot be told. */
  isAlive(holder: string): boolean;
}

/** `<boot>.<pid namespace>.<pid>.<start time>.<instance>`: a pid that is used again has another start time. */
export class LinuxProcessIdentity implements ProcessIdentity {
  readonly self: string;
  readonly #place: string;

  /** `instance` tells several owners within one process apart. */
  constructor(instance: string) {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const namespace = readlinkSync("/proc/self/ns/pid").replace(/\D/g, "");
    this.#place = `${boot}.${namespace}`;
    this.self = `${this.#place}.${process.pid}.${startTime(process.pid)}.${instance}`;
  }

  isDead(holder: string): boolean {
    return this.#lives(holder) === false;
  }

  isAlive(holder: string): boolean {
    return this.#lives(holder) === true;
  }

  #lives(holder: string): boolean | undefined {
    if (holder === this.self) return true;
    const [boot, namespace, pid, started] = holder.split(".");
    if (`${boot}.${namespace}` !== this.#place || pid === undefined) return undefined;
    return startTime(Number(pid)) === started;
  }
}

/** Ticks since boot; undefined when there is no such process. Zombies count as ended. */
function startTime(pid: number): string | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  // The command's name may hold spaces and brackets; the fields begin after its last bracket.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
}

import { AidoError } from "@aido/sdk/protocol";
import type { Supervisor } from "../supervisor/supervisor.ts";

const MAX_PASSWD_BYTES = 1_048_576;
const MAX_ID = 4_294_967_294;

type User = { uid: number; gid: number };

/** Turns `uid`, `uid:gid` or a name of the sandbox's own /etc/passwd into numbers; names are looked up once. */
export class ExecUsers {
  /** By supervisor: a new container has a new one, and perhaps other users. */
  readonly #known = new WeakMap<Supervisor, Promise<ReadonlyMap<string, User>>>();

  async resolve(supervisor: Supervisor, user: string, signal?: AbortSignal): Promise<User> {
    const numbers = /^(\d+)(?::(\d+))?$/.exec(user);
    if (numbers !== null) {
      const uid = Number(numbers[1]);
      const gid = Number(numbers[2] ?? numbers[1]);
      if (uid > MAX_ID || gid > MAX_ID) throw new AidoError("VALIDATION_ERROR", `There is no user ${user}`);
      return { uid, gid };
    }
    const found = (await this.#users(supervisor, signal)).get(user);
    if (found !== undefined) return found;
    throw new AidoError("VALIDATION_ERROR", `The sandbox has no user ${JSON.stringify(user)}`, {
      hint: "Use a name from its /etc/passwd, or numbers such as 1000:1000.",
    });
  }

  #users(supervisor: Supervisor, signal?: AbortSignal): Promise<ReadonlyMap<string, User>> {
    const known = this.#known.get(supervisor);
    if (known !== undefined) return known;
    const reading = readPasswd(supervisor, signal);
    this.#known.set(supervisor, reading);
    reading.catch(() => this.#known.delete(supervisor));
    return reading;
  }
}

async function readPasswd(supervisor: Supervisor, signal?: AbortSignal): Promise<ReadonlyMap<string, User>> {
  const run = supervisor.tool(["read", "/", "/etc/passwd", "0", String(MAX_PASSWD_BYTES)], { signal });
  const chunks: Uint8Array[] = [];
  for await (const chunk of run.stdout) chunks.push(chunk);
  await run.done;
  const users = new Map<string, User>();
  for (const line of Buffer.concat(chunks).toString("utf8").split("\n")) {
    const [name = "", , uid = "", gid = ""] = line.split(":");
    const isUser = name !== "" && /^\d{1,10}$/.test(uid) && /^\d{1,10}$/.test(gid);
    if (isUser && !users.has(name) && Number(uid) <= MAX_ID && Number(gid) <= MAX_ID) {
      users.set(name, { uid: Number(uid), gid: Number(gid) });
    }
  }
  return users;
}

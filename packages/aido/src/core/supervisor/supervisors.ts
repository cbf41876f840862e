import type { Clock } from "../clock.ts";
import type { Driver } from "../driver/driver.ts";
import type { Logger } from "../logger.ts";
import { Supervisor } from "./supervisor.ts";

/** What is needed to reach a sandbox's supervisor; a SandboxRecord has it. */
export interface SupervisorKey {
  id: string;
  supervisorToken: string;
}

/** One Supervisor per sandbox and process, so that everything about a sandbox shares one connection. */
export class Supervisors {
  readonly #driver: Driver;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #open = new Map<string, { token: string; supervisor: Supervisor }>();

  constructor(options: { driver: Driver; clock: Clock; logger: Logger }) {
    this.#driver = options.driver;
    this.#clock = options.clock;
    this.#logger = options.logger;
  }

  get(key: SupervisorKey): Supervisor {
    const known = this.#open.get(key.id);
    if (known?.token === key.supervisorToken) return known.supervisor;
    // A new token means a new incarnation: the former connection cannot lead to it.
    known?.supervisor.drop();
    const supervisor = new Supervisor({
      connect: (signal) => this.#driver.connect(key.id, signal),
      isRunning: async () => (await this.#driver.inspect(key.id))?.state === "running",
      token: key.supervisorToken,
      clock: this.#clock,
      logger: this.#logger.child({ sandboxId: key.id }),
    });
    this.#open.set(key.id, { token: key.supervisorToken, supervisor });
    return supervisor;
  }

  /** The sandbox is about to be removed: one that ends by itself is gone sooner than one that its engine has to kill. */
  letGo(sandboxId: string): void {
    const supervisor = this.#open.get(sandboxId)?.supervisor;
    if (supervisor?.isConnected === true) supervisor.shutdown(0).catch(() => undefined);
  }

  /** The sandbox has ended: its execs are lost, its connection is closed. */
  drop(sandboxId: string): void {
    this.#open.get(sandboxId)?.supervisor.drop();
    this.#open.delete(sandboxId);
  }

  /** This process ends: connections are closed, what runs in sandboxes runs on. */
  close(): void {
    for (const { supervisor } of this.#open.values()) supervisor.close();
    this.#open.clear();
  }
}

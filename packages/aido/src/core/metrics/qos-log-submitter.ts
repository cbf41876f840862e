import type { Logger } from "../logger.ts";
import type { QosSnapshot, QosSubmitter } from "./qos-report.ts";

/** For a dry run: what would be submitted is in the log, and goes nowhere else. */
export class LogSubmitter implements QosSubmitter {
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  async submit(snapshot: QosSnapshot): Promise<void> {
    this.#logger.info({ event: "qos.snapshot", ...snapshot }, "not submitted: QOS_DRY_RUN");
  }
}

import type { Counts } from "../../core/metrics/counters.ts";
import type { JobStore, RunningJob } from "../../core/store/store.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import { addCounts } from "./sqlite-counters.ts";

export class SqliteJobs implements JobStore {
  readonly #db: SqliteConnection;

  constructor(db: SqliteConnection) {
    this.#db = db;
  }

  async begin(job: RunningJob): Promise<void> {
    const sql = "INSERT INTO running_jobs (id, job, holder, started_at) VALUES (?, ?, ?, ?)";
    this.#db.run(sql, job.id, job.job, job.holder, job.startedAt.getTime());
  }

  async end(id: string, counts: Counts): Promise<boolean> {
    return this.#db.write(() => {
      const isOurs = this.#db.run("DELETE FROM running_jobs WHERE id = ?", id) > 0;
      if (isOurs) addCounts(this.#db, counts);
      return isOurs;
    });
  }

  async list(): Promise<readonly RunningJob[]> {
    return this.#db.all("SELECT * FROM running_jobs ORDER BY started_at, id").map((row) => ({
      id: String(row["id"]),
      job: Number(row["job"]),
      holder: String(row["holder"]),
      startedAt: new Date(Number(row["started_at"])),
    }));
  }
}

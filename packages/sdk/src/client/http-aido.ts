import type { Aido } from "../aido.ts";
import { HttpAgents } from "./http-agents.ts";
import { HttpBatches } from "./http-batches.ts";
import { HttpEvidence } from "./http-evidence.ts";
import { HttpExecs } from "./http-execs.ts";
import { HttpFiles } from "./http-files.ts";
import { HttpGc } from "./http-gc.ts";
import { HttpHistory } from "./http-history.ts";
import { HttpImages } from "./http-images.ts";
import { HttpJobs } from "./http-jobs.ts";
import { HttpReaper } from "./http-reaper.ts";
import { HttpRuns } from "./http-runs.ts";
import { HttpSandboxes } from "./http-sandboxes.ts";
import { HttpSnapshots } from "./http-snapshots.ts";
import { HttpSsh } from "./http-ssh.ts";
import { HttpWorkflows } from "./http-workflows.ts";
import { HttpWorkspaces } from "./http-workspaces.ts";
import { Transport, type TransportOptions } from "./transport.ts";

/** What the server says of itself. */
export interface ServerInfo {
  version: string;
  driver: string;
  isolations: readonly string[];
  networks: readonly string[];
  warnings: readonly string[];
}

/** Aido on a server. Holds nothing open between calls. */
export class HttpAido implements Aido {
  readonly sandboxes: HttpSandboxes;
  readonly execs: HttpExecs;
  readonly files: HttpFiles;
  readonly history: HttpHistory;
  readonly images: HttpImages;
  readonly snapshots: HttpSnapshots;
  readonly evidence: HttpEvidence;
  readonly runs: HttpRuns;
  readonly jobs: HttpJobs;
  readonly batches: HttpBatches;
  readonly workflows: HttpWorkflows;
  readonly reaper: HttpReaper;
  readonly agents: HttpAgents;
  readonly ssh: HttpSsh;
  readonly gc: HttpGc;
  readonly workspaces: HttpWorkspaces;
  readonly #transport: Transport;

  constructor(options: TransportOptions) {
    const transport = new Transport(options);
    this.#transport = transport;
    this.sandboxes = new HttpSandboxes(transport);
    this.execs = new HttpExecs(transport);
    this.files = new HttpFiles(transport);
    this.history = new HttpHistory(transport);
    this.images = new HttpImages(transport);
    this.snapshots = new HttpSnapshots(transport);
    this.evidence = new HttpEvidence(transport);
    this.runs = new HttpRuns(transport);
    this.jobs = new HttpJobs(transport);
    this.batches = new HttpBatches(transport);
    this.workflows = new HttpWorkflows(transport, this.jobs);
    this.reaper = new HttpReaper(transport);
    this.agents = new HttpAgents(transport);
    this.ssh = new HttpSsh(transport);
    this.gc = new HttpGc(transport);
    this.workspaces = new HttpWorkspaces(transport);
  }

  get url(): string {
    return this.#transport.url;
  }

  info(signal?: AbortSignal): Promise<ServerInfo> {
    return this.#transport.json("/api/server", { repeatable: true, signal });
  }

  metrics(): Promise<Readonly<Record<string, number>>> {
    return this.#transport.json("/api/metrics", { repeatable: true });
  }

  async close(): Promise<void> {}
}

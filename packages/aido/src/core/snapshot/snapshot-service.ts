import { randomBytes } from "node:crypto";
import type { RestoreSnapshot, SnapshotInfo, Snapshots, TakeSnapshot } from "@aido/sdk";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type { Activity } from "../activity/activity.ts";
import type { Clock } from "../clock.ts";
import type { EvidenceSink } from "../evidence/evidence-sink.ts";
import type { Counts } from "../metrics/counters.ts";
import { parseAddress, printableAddress } from "../object-store/object-address.ts";
import type { ObjectStores } from "../object-store/object-stores.ts";
import type { SandboxResolver } from "../sandbox/sandbox-resolver.ts";
import type { SandboxPatch, SandboxRecord, Store } from "../store/store.ts";
import type { Supervisors } from "../supervisor/supervisors.ts";
import { compress, SNAPSHOT_NAME } from "./codec.ts";
import { atLeastPace } from "./least-pace.ts";
import type { SnapshotManifest } from "./manifest.ts";
import { packSnapshot } from "./pack-snapshot.ts";
import { SandboxTrees } from "./sandbox-trees.ts";
import { unpackSnapshot } from "./unpack-snapshot.ts";

/** Where services inside a sandbox keep what is theirs. */
const STATE_DIRECTORY = "/var/lib/sidecar";
const STAGE = ".aido-restore-";

export interface SnapshotServiceDeps {
  readonly stores: ObjectStores;
  /** The operator's own place, ending with a slash; undefined when there is none. */
  readonly prefix: string | undefined;
  /** Of the files, before compression; 0 means no limit. */
  readonly maxBytes: number;
  readonly sandboxes: SandboxResolver;
  readonly store: Pick<Store, "sandboxes" | "counters">;
  readonly supervisors: Supervisors;
  readonly evidence: EvidenceSink;
  /** A sandbox whose files are being carried is in use. */
  readonly activity: Pick<Activity, "begin">;
  readonly clock: Clock;
  /** Until what was done before is in the history: a change made now belongs to what comes after. */
  readonly settled?: ((sandboxId: string) => Promise<void> | undefined) | undefined;
}

/** Takes sandboxes' files out as objects and puts them back. Nothing of a sandbox is replaced before all is verified. */
export class SnapshotService implements Snapshots {
  readonly #deps: SnapshotServiceDeps;

  constructor(deps: SnapshotServiceDeps) {
    this.#deps = deps;
  }

  /**
   * Where a snapshot goes that names no destination: beneath the place of the sandbox's owner, of whom many sandboxes may
   * have the same, or else beneath the operator's. Undefined when there is neither.
   */
  placeOf({
    id,
    snapshotDestination,
  }: Pick<SandboxRecord, "id" | "snapshotDestination">): string | undefined {
    const place = snapshotDestination ?? this.#deps.prefix;
    return place === undefined ? undefined : withName(place, `${id}/${SNAPSHOT_NAME}`);
  }

  /** Written by aido beneath the operator's prefix, and so aido's to remove. */
  isOperatorManaged(url: string): boolean {
    return this.#deps.stores.isOperatorManaged(url);
  }

  async take(sandbox: string, options: TakeSnapshot = {}): Promise<SnapshotInfo> {
    const record = await this.#deps.sandboxes.resolveRunning(sandbox);
    using _ = this.#deps.activity.begin(record.id, "files");
    return await this.takeKept(record, options);
  }

  /** Of a sandbox that runs. What lies in its place is written down, and goes with it when that is the operator's. */
  async takeKept(record: SandboxRecord, options: TakeSnapshot = {}): Promise<SnapshotInfo> {
    const url = this.#destination(record, options.destination);
    if (url !== this.placeOf(record)) {
      const taken = await this.takeFrom(record, options);
      await this.#deps.store.counters.add({ snapshots_uploaded: 1 });
      return taken;
    }
    // Before the upload, so that what it leaves is found and removed though nobody lives to write down its end.
    if (this.isOperatorManaged(url)) await this.#note(record, { snapshotUrl: url, snapshotIsStale: true });
    const taken = await this.takeFrom(record, options);
    const snapshotSha256 = options.includeWorkspace === false ? undefined : taken.sha256;
    // It runs on: from now on this is what it was before.
    const kept = { snapshotUrl: url, snapshotSha256, snapshotIsStale: true };
    if (await this.#note(record, kept, { snapshots_uploaded: 1 })) return taken;
    if (!(await this.remove(url))) return taken;
    throw new AidoError(
      "CONTAINER_NOT_FOUND",
      `Sandbox ${record.id} was destroyed while its snapshot was taken`,
      {
        hint: "Name a destination of your own for files that are to outlive their sandbox.",
        details: { sandbox: record.id },
      },
    );
  }

  async restore(sandbox: string, url: string, options: RestoreSnapshot = {}): Promise<void> {
    const record = await this.#deps.sandboxes.resolveRunning(sandbox);
    using _ = this.#deps.activity.begin(record.id, "files");
    await this.restoreTo(record, url, options);
  }

  /** Whatever state the record is in: its supervisor must answer. */
  async takeFrom(record: SandboxRecord, options: TakeSnapshot = {}): Promise<SnapshotInfo> {
    const { includeWorkspace = true, includeState = false, signal, onProgress } = options;
    if (!includeWorkspace && !includeState) {
      throw new AidoError("VALIDATION_ERROR", "A snapshot must hold the workspace, the state or both", {
        details: { field: "includeWorkspace" },
      });
    }
    const url = this.#destination(record, options.destination);
    const { store, key } = await this.#deps.stores.locate(url);
    const createdAt = this.#deps.clock.now();
    onProgress?.(`Packing the files of ${record.id}`);
    const plain = packSnapshot({
      trees: new SandboxTrees(this.#deps.supervisors.get(record), signal),
      workspace: includeWorkspace ? record.workdir : undefined,
      state: includeState ? STATE_DIRECTORY : undefined,
      about: {
        sandboxId: record.id,
        image: record.image,
        workdir: record.workdir,
        createdAt: createdAt.toISOString(),
      },
      maxBytes: this.#deps.maxBytes,
    });
    const { clock } = this.#deps;
    const { bytes, sha256 } = await atLeastPace(
      { clock, what: `The upload of ${record.id}`, signal },
      plain,
      (files, paced) => store.put(key, compress(files), { signal: paced }),
    );
    await this.#tell(record, "snapshot.taken", { url: printableAddress(url), bytes, sha256 });
    return { url, sha256, bytes, createdAt };
  }

  /** Whatever state the record is in: its supervisor must answer. */
  async restoreTo(record: SandboxRecord, url: string, options: RestoreSnapshot = {}): Promise<void> {
    const { sha256, signal, onProgress } = options;
    this.#mustBeFor(record, url);
    const { store, key } = await this.#deps.stores.locate(url);
    const object = await store.get(key, { isTransient: true, signal });
    await this.#deps.settled?.(record.id);
    const trees = new SandboxTrees(this.#deps.supervisors.get(record), signal);
    const { maxBytes } = this.#deps;
    const stage = `${STAGE}${randomBytes(6).toString("hex")}`;
    onProgress?.(`Unpacking the snapshot in ${record.id}`);
    let manifest: SnapshotManifest;
    try {
      manifest = await unpackSnapshot(object, {
        sha256,
        maxBytes,
        workspace: (archive) => trees.unpack(record.workdir, `${stage}/new`, archive),
      });
      // It lies where the sandbox's user may not stage anything, so it is unpacked when it is known to be whole.
      if (manifest.state !== null) {
        const again = await store.get(key, { isTransient: true, signal });
        const state = (archive: AsyncIterable<Uint8Array>) => trees.unpack("/", STATE_DIRECTORY, archive);
        await unpackSnapshot(again, { sha256, maxBytes, state });
      }
    } catch (thrown) {
      await this.#clear(trees, record, stage);
      throw thrown;
    }
    if (manifest.workspace !== null) await trees.replace(record.workdir, stage);
    else await this.#clear(trees, record, stage);
    await this.#tell(record, "snapshot.restored", { url: printableAddress(url), sha256 });
  }

  /** Raises unless the object is there with all its bytes, so that what it was made of can be removed. */
  async prove({ url, bytes }: Pick<SnapshotInfo, "url" | "bytes">, signal?: AbortSignal): Promise<void> {
    const { store, key } = await this.#deps.stores.locate(url);
    const found = await store.head(key, { signal });
    if (found?.bytes === bytes) return;
    const has = found === undefined ? "has no object" : `has ${found.bytes} bytes`;
    throw new AidoError("OBJECT_BROKEN", `${printableAddress(url)} ${has} where ${bytes} bytes were sent`, {
      hint: "Check what keeps the objects there, and its rules of removal.",
    });
  }

  /** Only the operator's own objects are ever removed: true when this was one. Idempotent. */
  async remove(url: string, signal?: AbortSignal): Promise<boolean> {
    if (!this.isOperatorManaged(url)) return false;
    const { store, key } = await this.#deps.stores.locate(url);
    await store.remove(key, { signal });
    return true;
  }

  #destination(record: SandboxRecord, given: string | undefined): string {
    if (given === undefined || given === "") {
      const own = this.placeOf(record);
      if (own !== undefined) return own;
      throw new AidoError("VALIDATION_ERROR", "There is no destination for the snapshot", {
        hint: "Name one, or let the operator set AIDO_SNAPSHOT_PREFIX.",
        details: { field: "destination" },
      });
    }
    const url = parseAddress(given).pathname.endsWith("/")
      ? withName(given, `${record.id}/${SNAPSHOT_NAME}`)
      : given;
    // One object of each sandbox is looked after there: any other would stay when the sandbox is gone.
    if (this.isOperatorManaged(url) && url !== this.placeOf(record)) throw keptForOthers();
    return url;
  }

  /** False when the sandbox is destroyed: nobody looks after what it had any more. */
  async #note({ id }: SandboxRecord, patch: SandboxPatch, counts?: Counts): Promise<boolean> {
    const { sandboxes } = this.#deps.store;
    for (const state of ["running", "stopped"] as const) {
      if (await sandboxes.transition(id, state, state, patch, counts)) return true;
    }
    return false;
  }

  /** Beneath the operator's prefix each sandbox has a place of its own; nobody reads from another's. */
  #mustBeFor(record: SandboxRecord, url: string): void {
    const { prefix } = this.#deps;
    if (!this.isOperatorManaged(url) || parseAddress(url).href.startsWith(`${prefix}${record.id}/`)) return;
    throw keptForOthers();
  }

  /** What cannot be removed any more went with its sandbox; the failure before that is what the user must hear. */
  async #clear(trees: SandboxTrees, record: SandboxRecord, stage: string): Promise<void> {
    await trees.remove(record.workdir, stage).catch((thrown: unknown) => {
      if (!isAidoError(thrown)) throw thrown;
    });
  }

  async #tell(
    record: SandboxRecord,
    event: string,
    detail: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    await this.#deps.evidence.append(record.id, event, detail);
  }
}

function withName(address: string, name: string): string {
  const url = new URL(address);
  url.pathname = url.pathname.replace(/\/*$/, `/${name}`);
  return url.href;
}

function keptForOthers(): AidoError {
  return new AidoError("DESTINATION_REFUSED", "This place is kept for the snapshots of other sandboxes", {
    hint: "Leave the destination out, or name one of your own.",
  });
}

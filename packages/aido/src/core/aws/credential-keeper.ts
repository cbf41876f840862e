import { type CreateSandbox, isAidoError, toAidoError } from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import type { EvidenceSink } from "../evidence/evidence-sink.ts";
import type { Logger } from "../logger.ts";
import type { SandboxRecord, SandboxStore } from "../store/store.ts";
import type { Supervisors } from "../supervisor/supervisors.ts";
import { orAborted, withTimeLimit } from "../supervisor/time-limit.ts";
import type { AwsAccess, AwsGrant } from "./aws-access.ts";
import { type CredentialOffer, findOffer, offerCredentials } from "./credential-offer.ts";

const MINUTE_MS = 60_000;
const OFFER_LIMIT_MS = 15_000;
/** Whoever uses a sandbox waits so long for fresh credentials; the use itself does not depend on them. */
const READY_LIMIT_MS = 10_000;
const FIRST_PAUSE_MS = 1_000;
/** Another process's offer may end without a word. */
const LOOK_MS = 5 * MINUTE_MS;

export interface CredentialKeeperDeps {
  readonly access: AwsAccess;
  readonly supervisors: Supervisors;
  readonly sandboxes: Pick<SandboxStore, "get">;
  readonly evidence: EvidenceSink;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface Kept {
  readonly token: string;
  readonly stop: AbortController;
  /** Settled after the first look: there are fresh credentials now, or none to be had. */
  readonly ready: Promise<void>;
  readonly done: Promise<void>;
  /** Since its record was last read. */
  isChanged: boolean;
  wake: () => void;
}

interface Given {
  offer: CredentialOffer;
  /** Undefined when another process made it. */
  grant: AwsGrant | undefined;
}

/**
 * Sees to it that sandboxes with AWS permissions have fresh credentials while this process has to do with them. When it
 * is killed they end by themselves; whoever uses the sandbox next goes on.
 */
export class CredentialKeeper {
  readonly #deps: CredentialKeeperDeps;
  readonly #kept = new Map<string, Kept>();
  readonly #given = new Map<string, Given>();

  constructor(deps: CredentialKeeperDeps) {
    this.#deps = deps;
  }

  /** Variables of a new sandbox: the SDKs ask for a region, and the one of the settings is the likeliest. */
  environment({ permissions, env }: Pick<CreateSandbox, "permissions" | "env">): CreateSandbox["env"] {
    if (permissions?.aws === undefined || env?.["AWS_REGION"] || env?.["AWS_DEFAULT_REGION"]) return env;
    const { region } = this.#deps.access;
    return { ...env, AWS_REGION: region, AWS_DEFAULT_REGION: region };
  }

  /** Raises what `AwsAccess.check` does. */
  check(record: Pick<SandboxRecord, "permissions" | "network">): void {
    this.#deps.access.check(record);
  }

  /** For a sandbox that is about to be started; undefined when it asks for nothing. */
  async assume(record: SandboxRecord, signal: AbortSignal): Promise<AwsGrant | undefined> {
    const { access, clock } = this.#deps;
    const endsAt = record.ttlMs === 0 ? undefined : new Date(clock.now().getTime() + record.ttlMs);
    return await access.assume(record, endsAt, signal);
  }

  /** The sandbox's loopback answers with them when this resolves. */
  async offer(record: SandboxRecord, grant: AwsGrant | undefined, signal?: AbortSignal): Promise<void> {
    if (grant === undefined) return;
    const { supervisors, clock } = this.#deps;
    const what = `Handing AWS credentials to sandbox ${record.id}`;
    const offer = await withTimeLimit({ clock, limitMs: OFFER_LIMIT_MS, what, signal }, () =>
      offerCredentials(supervisors.get(record), record, grant, clock.now()),
    );
    this.#given.set(record.id, { offer, grant });
  }

  /** Evidence of what was given; never of the credentials themselves. */
  async tell(record: SandboxRecord, grant: AwsGrant | undefined, event = "aws.granted"): Promise<void> {
    const aws = record.permissions?.aws;
    if (grant === undefined || aws === undefined) return;
    await this.#deps.evidence.append(record.id, event, {
      role: aws.role,
      roleArn: grant.roleArn,
      services: aws.services,
      expiresAt: grant.expiresAt.toISOString(),
    });
  }

  /** From now until the sandbox ends or is forgotten. Keeping twice is keeping once. */
  keep(record: SandboxRecord): void {
    if (record.permissions?.aws === undefined) return;
    const known = this.#kept.get(record.id);
    if (known?.token === record.supervisorToken && !known.stop.signal.aborted) return;
    known?.stop.abort();
    const stop = new AbortController();
    let isReady: () => void = () => undefined;
    const ready = new Promise<void>((resolve) => {
      isReady = resolve;
    });
    const kept: Kept = {
      token: record.supervisorToken,
      stop,
      ready,
      done: this.#run(record, stop.signal, isReady, known?.done).finally(() => {
        isReady();
        if (this.#kept.get(record.id) !== kept) return;
        this.#kept.delete(record.id);
        this.#given.delete(record.id);
      }),
      isChanged: false,
      wake: () => undefined,
    };
    this.#kept.set(record.id, kept);
  }

  /** Its life has changed. */
  changed(sandboxId: string): void {
    const kept = this.#kept.get(sandboxId);
    if (kept === undefined) return;
    kept.isChanged = true;
    kept.wake();
  }

  /** Keeps it, and waits a while for its credentials to be fresh. Never fails. */
  async ready(record: SandboxRecord, signal?: AbortSignal): Promise<void> {
    if (record.permissions?.aws === undefined) return;
    this.keep(record);
    const ready = this.#kept.get(record.id)?.ready;
    if (ready === undefined) return;
    const { clock } = this.#deps;
    const limit = { clock, limitMs: READY_LIMIT_MS, what: "Renewing AWS credentials", signal };
    await withTimeLimit(limit, () => ready).catch(() => undefined);
  }

  forget(sandboxId: string): void {
    this.#kept.get(sandboxId)?.stop.abort();
    this.#given.delete(sandboxId);
  }

  /** What is offered stays offered. */
  async close(): Promise<void> {
    const all = [...this.#kept.values()];
    for (const { stop } of all) stop.abort();
    await Promise.all(all.map(({ done }) => done));
    this.#given.clear();
  }

  async #run(
    first: SandboxRecord,
    signal: AbortSignal,
    isReady: () => void,
    before: Promise<void> | undefined,
  ): Promise<void> {
    const { clock, sandboxes } = this.#deps;
    await before;
    let failures = 0;
    let isTold = false;
    while (!signal.aborted) {
      const began = clock.now().getTime();
      const kept = this.#kept.get(first.id);
      if (kept !== undefined) kept.isChanged = false;
      try {
        const record = await sandboxes.get(first.id);
        if (record?.state !== "running" || record.supervisorToken !== first.supervisorToken) return;
        const { offer } = await this.#fresh(record, signal);
        isTold = false;
        isReady();
        const dueMs = renewAt(offer, record) - clock.now().getTime();
        const isEnded = await this.#nap(first.id, offer, Math.min(Math.max(0, dueMs), LOOK_MS), signal);
        // One that is ended from inside as soon as it is there is not worth a processor.
        failures = isEnded && clock.now().getTime() - began < MINUTE_MS ? failures + 1 : 0;
      } catch (thrown) {
        if (signal.aborted || isAidoError(thrown, "CONTAINER_LOST")) return;
        if (!isTold) await this.#failed(first.id, thrown);
        isTold = true;
        isReady();
        failures += 1;
      }
      if (failures > 0) await this.#pause(failures, signal);
    }
  }

  /** What is offered now, renewed when it is due. */
  async #fresh(record: SandboxRecord, signal: AbortSignal): Promise<Given> {
    const { access, supervisors, clock } = this.#deps;
    const known = this.#given.get(record.id);
    const offer = await orAborted(findOffer(supervisors.get(record), clock.now()), signal);
    if (offer !== undefined && renewAt(offer, record) > clock.now().getTime()) {
      const given = known?.offer.id === offer.id ? known : { offer, grant: undefined };
      this.#given.set(record.id, given);
      return given;
    }
    // Ended from inside: what it answered with is still good, and asking STS again would be for the sandbox to steer.
    const kept = offer === undefined ? known?.grant : undefined;
    const isKept = kept !== undefined && renewAt(kept, record) > clock.now().getTime();
    const grant = isKept ? kept : await access.assume(record, record.expiresAt, signal);
    await this.offer(record, grant, signal);
    if (!isKept) await this.tell(record, grant, "aws.renewed");
    const given = this.#given.get(record.id);
    if (given === undefined) throw new Error("nothing was offered");
    return given;
  }

  /** True when the offer has ended by then. */
  async #nap(id: string, offer: CredentialOffer, ms: number, signal: AbortSignal): Promise<boolean> {
    const woken = new AbortController();
    let isEnded = false;
    const kept = this.#kept.get(id);
    if (kept !== undefined) kept.wake = () => woken.abort();
    if (kept?.isChanged === true) return false;
    void offer.ended?.then(() => {
      isEnded = true;
      woken.abort();
    });
    await this.#deps.clock.sleep(ms, AbortSignal.any([signal, woken.signal])).catch(() => undefined);
    return isEnded;
  }

  async #pause(failures: number, signal: AbortSignal): Promise<void> {
    const ms = Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), MINUTE_MS);
    await this.#deps.clock.sleep(ms, signal).catch(() => undefined);
  }

  async #failed(sandboxId: string, thrown: unknown): Promise<void> {
    const { code, message } = toAidoError(thrown);
    this.#deps.logger.warn(
      { event: "aws.renew", sandboxId, code, message },
      "AWS credentials are not renewed",
    );
    await this.#deps.evidence.append(sandboxId, "aws.failed", { code, message });
  }
}

/** Early enough that programs never see an end; never when they last as long as the sandbox. */
function renewAt(
  { grantedAt, expiresAt }: Pick<CredentialOffer, "grantedAt" | "expiresAt">,
  { expiresAt: endsAt }: Pick<SandboxRecord, "expiresAt">,
): number {
  const end = expiresAt.getTime();
  if (endsAt !== undefined) {
    // The sandbox's life was cut: credentials must not outlive it, as far as that is still to be had.
    if (end > endsAt.getTime() + MINUTE_MS) return 0;
    if (endsAt.getTime() - end <= MINUTE_MS) return Number.POSITIVE_INFINITY;
  }
  const lifeMs = end - grantedAt.getTime();
  return end - Math.min(15 * MINUTE_MS, Math.max(lifeMs / 4, Math.min(5 * MINUTE_MS, lifeMs / 2)));
}

import { randomBytes, randomUUID } from "node:crypto";
import type { CreateSandbox, Network, ProfileName, ResourceLimits } from "@aido/sdk/protocol";
import { hashToken, newToken } from "../access/sandbox-tokens.ts";
import type { Mount } from "../driver/driver.ts";
import type { SandboxRecord } from "../store/store.ts";
import { TOKEN_BYTES } from "../supervisor/protocol.ts";
import { NO_TIER } from "../tier/tier-fields.ts";
import { type LifetimeDefaults, lifetimesOf, type SidecarLifetimes } from "./lifetimes.ts";
import { PROFILE_DEFAULTS } from "./profiles.ts";
import { resolveImage } from "./resolve-image.ts";
import type { SidecarImageOptions } from "./sidecar-image.ts";

/** What the configuration changes about every profile. */
export interface ProfileOverrides extends LifetimeDefaults {
  image?: string | undefined;
  limits?: CreateSandbox["limits"];
  /** Workspaces of one owner; 0 means no limit. */
  maxWorkspaces?: number | undefined;
  sidecar?: (SidecarLifetimes & SidecarImageOptions) | undefined;
}

export interface RecordContext {
  driver: string;
  now: Date;
  newId: () => string;
  profile: ProfileName;
  overrides: ProfileOverrides;
  mounts: (sandboxId: string) => readonly Mount[];
  /** What the driver can give; a profile that would like more gets none. */
  networks: readonly Network[];
}

/** A checked request with its profile's defaults filled in, as a record in state `pending`. */
export function buildRecord(request: CreateSandbox, context: RecordContext): SandboxRecord {
  const profileName = request.profile ?? context.profile;
  const profile = PROFILE_DEFAULTS[profileName];
  const id = request.id ?? (profile.hasSidecar ? `sandbox-${randomUUID()}` : context.newId());
  return {
    id,
    name: request.name,
    profile: profileName,
    image: resolveImage(request.image ?? context.overrides.image ?? profile.image),
    driver: context.driver,
    isolation: request.isolation ?? "container",
    state: "pending",
    endReason: undefined,
    containerId: undefined,
    workdir: request.workdir ?? profile.workdir,
    user: request.user,
    env: { ...request.env },
    imageEnv: {},
    network: request.network ?? (context.networks.includes(profile.network) ? profile.network : "none"),
    limits: limitsOf(request, profileName, context.overrides),
    privileged: request.privileged ?? false,
    history: request.history ?? false,
    permissions: request.permissions,
    labels: { ...request.labels },
    mounts: context.mounts(id),
    ...lifetimesOf(profileName, request, context.overrides),
    autoResume: request.autoResume ?? false,
    lastActivityAt: context.now,
    ...NO_TIER,
    snapshotDestination: request.snapshotDestination,
    supervisorToken: randomBytes(TOKEN_BYTES).toString("hex"),
    tokenHash: request.token === undefined ? undefined : hashToken(request.token),
    createdAt: context.now,
    startedAt: undefined,
    stoppedAt: undefined,
    expiresAt: undefined,
  };
}

/** What a sandbox made so may use. */
export function limitsOf(
  request: CreateSandbox,
  profile: ProfileName,
  overrides: ProfileOverrides,
): ResourceLimits {
  const { limits } = PROFILE_DEFAULTS[request.profile ?? profile];
  return { ...limits, ...defined(overrides.limits ?? {}), ...defined(request.limits ?? {}) };
}

/** Made before the record is, because the record has only its hash. */
export function withToken(request: CreateSandbox, profile: ProfileName = "aido"): CreateSandbox {
  const { hasSidecar } = PROFILE_DEFAULTS[request.profile ?? profile];
  return request.token === undefined && hasSidecar ? { ...request, token: newToken() } : request;
}

/** A key that is present but undefined must not hide a default. */
function defined(values: NonNullable<CreateSandbox["limits"]>): Partial<ResourceLimits> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

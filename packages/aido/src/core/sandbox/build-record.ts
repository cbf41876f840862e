import { randomBytes } from "node:crypto";
import type { CreateSandbox, ProfileName, ResourceLimits } from "@aido/sdk/protocol";
import type { Mount } from "../driver/driver.ts";
import type { SandboxRecord } from "../store/store.ts";
import { TOKEN_BYTES } from "../supervisor/protocol.ts";
import { checkRequest } from "./check-request.ts";
import { type LifetimeDefaults, lifetimesOf } from "./lifetimes.ts";
import { PROFILE_DEFAULTS } from "./profiles.ts";
import { resolveImage } from "./resolve-image.ts";

/** What the configuration changes about every profile. */
export interface ProfileOverrides extends LifetimeDefaults {
  image?: string | undefined;
  limits?: CreateSandbox["limits"];
}

export interface RecordContext {
  driver: string;
  now: Date;
  newId: () => string;
  profile: ProfileName;
  overrides: ProfileOverrides;
  mounts: (sandboxId: string) => readonly Mount[];
}

/** A checked request with its profile's defaults filled in, as a record in state `pending`. */
export function buildRecord(request: CreateSandbox, context: RecordContext): SandboxRecord {
  checkRequest(request);
  const id = request.id ?? context.newId();
  const profileName = request.profile ?? context.profile;
  const profile = PROFILE_DEFAULTS[profileName];
  const limits = defined(request.limits ?? {});
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
    network: request.network ?? profile.network,
    limits: { ...profile.limits, ...defined(context.overrides.limits ?? {}), ...limits },
    privileged: request.privileged ?? false,
    history: request.history ?? false,
    labels: { ...request.labels },
    mounts: context.mounts(id),
    ...lifetimesOf(profileName, request, context.overrides),
    autoResume: request.autoResume ?? false,
    lastActivityAt: context.now,
    supervisorToken: randomBytes(TOKEN_BYTES).toString("hex"),
    createdAt: context.now,
    startedAt: undefined,
    stoppedAt: undefined,
    expiresAt: undefined,
  };
}

/** A key that is present but undefined must not hide a default. */
function defined(values: NonNullable<CreateSandbox["limits"]>): Partial<ResourceLimits> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

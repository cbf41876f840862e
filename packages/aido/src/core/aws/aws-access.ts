import { AidoError, AWS_ROLE_ARN, type AwsPermissions } from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import type { SandboxRecord } from "../store/store.ts";
import { withTimeLimit } from "../supervisor/time-limit.ts";
import type { RoleCredentials, RoleSessions } from "./role-sessions.ts";
import { sessionPolicy } from "./session-policy.ts";

/** STS gives no shorter session; what lives less long is held to its end by the session's policy. */
const SHORTEST_MS = 900_000;
const LONGEST_MS = 12 * 3_600_000;
const ASSUME_LIMIT_MS = 20_000;
const MAX_NAME_CHARS = 64;

export interface AwsSettings {
  /** ARNs by what sandboxes call them. */
  readonly roles: Readonly<Record<"readonly" | "readwrite", string | undefined>>;
  /** ARNs that a sandbox may name itself. */
  readonly allowedRoles: readonly string[];
  /** All when empty. */
  readonly allowedServices: readonly string[];
  readonly sessionMs: number;
  readonly region: string;
  /** Whether the host has credentials of its own to ask with. */
  readonly hasCredentials: boolean;
}

export interface AwsAccessDeps {
  readonly settings: AwsSettings;
  readonly sessions: () => Promise<RoleSessions>;
  readonly clock: Clock;
}

/** Credentials for one sandbox, and until when it is told that they last. */
export interface AwsGrant {
  readonly credentials: RoleCredentials;
  readonly roleArn: string;
  readonly grantedAt: Date;
  readonly expiresAt: Date;
}

/** What sandboxes may do in AWS: the operator's settings decide, and STS has the last word. */
export class AwsAccess {
  readonly #deps: AwsAccessDeps;

  constructor(deps: AwsAccessDeps) {
    this.#deps = deps;
  }

  get region(): string {
    return this.#deps.settings.region;
  }

  /** Raises AWS_NOT_CONFIGURED, AWS_REFUSED, UNSUPPORTED or VALIDATION_ERROR, without asking anybody. */
  check({ permissions, network }: Pick<SandboxRecord, "permissions" | "network">): void {
    const aws = permissions?.aws;
    if (aws === undefined) return;
    this.#roleArn(aws);
    this.#checkServices(aws);
    sessionPolicy(aws, new Date(0));
    if (network === "host") {
      throw new AidoError("UNSUPPORTED", "A sandbox on the host's network cannot have AWS permissions", {
        hint: "Its loopback is the host's. Choose network bridge or none.",
      });
    }
    if (this.#deps.settings.hasCredentials) return;
    throw new AidoError("AWS_NOT_CONFIGURED", "There are no AWS credentials to ask for the role with", {
      hint: "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AIDO_AWS_ACCESS_KEY_ID_FILE and AIDO_AWS_SECRET_ACCESS_KEY_FILE, where aido runs. See docs/guides/aws.md.",
    });
  }

  /** `endsAt` is the end of the sandbox, if it has one. */
  async assume(
    record: Pick<SandboxRecord, "id" | "permissions" | "network">,
    endsAt: Date | undefined,
    signal?: AbortSignal,
  ): Promise<AwsGrant | undefined> {
    const aws = record.permissions?.aws;
    if (aws === undefined) return undefined;
    this.check(record);
    const { clock, settings, sessions } = this.#deps;
    const grantedAt = clock.now();
    const leftMs =
      endsAt === undefined ? Number.POSITIVE_INFINITY : Math.max(0, endsAt.getTime() - grantedAt.getTime());
    const roleArn = this.#roleArn(aws);
    const request = {
      roleArn,
      sessionName: `aido-${record.id}`.slice(0, MAX_NAME_CHARS),
      policy: sessionPolicy(aws, leftMs < SHORTEST_MS ? endsAt : undefined),
      durationSeconds: Math.floor(
        Math.max(SHORTEST_MS, Math.min(settings.sessionMs, LONGEST_MS, leftMs)) / 1000,
      ),
    };
    const limit = { clock, limitMs: ASSUME_LIMIT_MS, what: `Asking STS for the role ${roleArn}`, signal };
    const credentials = await withTimeLimit(limit, async (bound) =>
      (await sessions()).assume(request, bound),
    );
    const isBounded = endsAt !== undefined && endsAt < credentials.expiresAt;
    return { credentials, roleArn, grantedAt, expiresAt: isBounded ? endsAt : credentials.expiresAt };
  }

  #roleArn({ role }: AwsPermissions): string {
    const { roles, allowedRoles } = this.#deps.settings;
    if (AWS_ROLE_ARN.test(role)) {
      if (allowedRoles.includes(role)) return role;
      throw new AidoError("AWS_REFUSED", `The role ${role} is not among those that sandboxes may name`, {
        hint: "Add it to the setting aws.allowedRoles (AIDO_AWS_ALLOWED_ROLES) where aido runs.",
        details: { role },
      });
    }
    const arn = role === "readonly" || role === "readwrite" ? roles[role] : undefined;
    if (arn !== undefined) return arn;
    throw new AidoError("AWS_NOT_CONFIGURED", `No role is set for permissions.aws.role ${role}`, {
      hint: `Set aws.${role}Role (AIDO_AWS_${role.toUpperCase()}_ROLE) to the ARN of a role where aido runs. See docs/guides/aws.md.`,
      details: { role },
    });
  }

  #checkServices({ services }: AwsPermissions): void {
    const { allowedServices } = this.#deps.settings;
    const refused = services.find((service) => !allowedServices.includes(service));
    if (allowedServices.length === 0 || refused === undefined) return;
    throw new AidoError("AWS_REFUSED", `The service ${refused} is not among those that sandboxes may use`, {
      hint: `Allowed are ${allowedServices.join(", ")}: the setting aws.allowedServices where aido runs.`,
      details: { service: refused },
    });
  }
}

import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { ResourceLimits } from "@aido/sdk/protocol";
import type { AwsUsers } from "./aws-settings.ts";
import type { ImageBuilders } from "./image-settings.ts";
import type { Secret } from "./secret.ts";
import type { Values } from "./settings.ts";

export interface ServeConfig {
  readonly host: string;
  readonly port: number;
  readonly sshHost: string;
  readonly sshPort: number | undefined;
  readonly open: boolean;
  readonly rateLimit: number;
  readonly maxSandboxes: number;
  readonly maxCpus: number;
  readonly maxMemoryBytes: number;
  readonly maxBodyBytes: number;
  readonly bodyIdleMs: number;
  /** Of sandboxes that name no life of their own; 0 is none. */
  readonly timeoutMs: number;
  readonly corsOrigins: readonly string[];
  readonly pool: string | undefined;
  readonly jwtSecret: Secret | undefined;
  readonly jwksUrl: string | undefined;
  readonly jwtIssuer: string | undefined;
  readonly jwtAudience: string | undefined;
  readonly publicUrl: string | undefined;
}

export interface SidecarConfig {
  readonly image: string;
  /** Somebody has named it, be it the default. */
  readonly isImageSet: boolean;
  readonly publicHost: string;
  readonly httpPort: number;
  readonly ownPorts: boolean;
  readonly pullImage: boolean;
  readonly idleTimeoutMs: number;
  readonly maxIdleTimeoutMs: number;
  readonly ttlMs: number;
  readonly maxTtlMs: number;
}

export interface ReaperConfig {
  readonly intervalMs: number;
  readonly busyCpus: number;
  readonly snapshot: boolean;
}

export interface GcConfig {
  readonly intervalMs: number;
  readonly hotMs: number;
  readonly warmMs: number;
  readonly coldMs: number;
  readonly autoCommit: boolean | undefined;
}

export interface QosConfig {
  readonly enabled: boolean;
  readonly intervalMs: number;
  readonly dryRun: boolean;
  /** As they were written, unless a setting of aido's own says them. */
  readonly serviceId: string | undefined;
  readonly blueprintId: string | undefined;
}

export interface HistoryConfig {
  /** Infinite when there is no limit. */
  readonly maxBytes: number;
}

export interface WorkspaceConfig {
  readonly ttlMs: number;
  readonly max: number;
}

export interface SnapshotConfig {
  readonly prefix: string | undefined;
  readonly allow: readonly string[];
  readonly maxBytes: number;
}

export interface S3Config {
  readonly endpoint: string | undefined;
  readonly region: string;
  readonly accessKeyId: Secret | undefined;
  readonly secretAccessKey: Secret | undefined;
  readonly sessionToken: Secret | undefined;
  readonly pathStyle: boolean | undefined;
}

export interface AwsConfig {
  readonly roles: Readonly<Record<"readonly" | "readwrite", string | undefined>>;
  readonly allowedRoles: readonly string[];
  readonly allowedServices: readonly string[];
  readonly users: AwsUsers;
  readonly sessionMs: number;
  readonly region: string;
  readonly stsEndpoint: string | undefined;
  readonly externalId: string | undefined;
  readonly accessKeyId: Secret | undefined;
  readonly secretAccessKey: Secret | undefined;
  readonly sessionToken: Secret | undefined;
}

export interface ImagesConfig {
  readonly bases: readonly string[];
  readonly builders: ImageBuilders;
  readonly timeoutMs: number;
  readonly memoryBytes: number;
  readonly maxBytes: number;
  readonly network: "bridge" | "none";
}

/** What the rest of aido is handed: read once, frozen, paths absolute, units converted. */
export interface Config
  extends Readonly<
    Omit<
      Values,
      | `limits.${string}`
      | `serve.${string}`
      | `images.${string}`
      | `sidecar.${string}`
      | `reaper.${string}`
      | `gc.${string}`
      | `qos.${string}`
      | `snapshot.${string}`
      | `history.${string}`
      | `workspaces.${string}`
      | `s3.${string}`
      | `aws.${string}`
      | `swarm.${string}`
      | "ttl"
      | "dockerHosts"
      | "batchTtl"
      | "idleTimeout"
      | "requestTimeout"
    >
  > {
  readonly ttlMs: number | undefined;
  readonly idleTimeoutMs: number | undefined;
  readonly requestTimeoutMs: number;
  readonly batchTtlMs: number;
  readonly limits: Partial<ResourceLimits>;
  /** None when there is one engine, which `dockerHost` names. */
  readonly dockerHosts: readonly string[];
  readonly images: ImagesConfig;
  readonly serve: ServeConfig;
  readonly sidecar: SidecarConfig;
  readonly reaper: ReaperConfig;
  readonly gc: GcConfig;
  readonly qos: QosConfig;
  readonly history: HistoryConfig;
  readonly workspaces: WorkspaceConfig;
  readonly snapshot: SnapshotConfig;
  readonly s3: S3Config;
  readonly aws: AwsConfig;
}

export function toConfig(values: Values, cwd: string, isSet: (key: keyof Values) => boolean): Config {
  const limits = {
    cpus: values["limits.cpus"],
    memoryBytes: values["limits.memory"],
    pids: values["limits.pids"],
    diskBytes: values["limits.disk"],
    openFiles: values["limits.openFiles"],
    outputBytes: values["limits.output"],
  };
  const set = Object.entries(limits).filter(([, value]) => value !== undefined);
  return Object.freeze({
    driver: values.driver,
    dataDir: absolute(values.dataDir, cwd),
    dockerHost: values.dockerHost,
    dockerHosts: toList(values.dockerHosts),
    dockerCertPath: values.dockerCertPath,
    agentPath: values.agentPath === undefined ? undefined : absolute(values.agentPath, cwd),
    profile: values.profile,
    defaultImage: values.defaultImage,
    ttlMs: values.ttl,
    idleTimeoutMs: values.idleTimeout,
    limits: Object.freeze(Object.fromEntries(set)),
    batchTtlMs: values.batchTtl,
    workflowSchedule: values.workflowSchedule,
    operatorAddress: values.operatorAddress,
    operatorCapacity: values.operatorCapacity,
    images: Object.freeze({
      bases: toList(values["images.bases"]),
      builders: values["images.builders"],
      timeoutMs: values["images.buildTimeout"],
      memoryBytes: values["images.buildMemory"],
      maxBytes: values["images.buildSize"],
      network: values["images.buildNetwork"],
    }),
    agents: values.agents,
    defaultAgent: values.defaultAgent,
    server: values.server,
    apiKey: values.apiKey,
    requestTimeoutMs: values.requestTimeout,
    serve: Object.freeze({
      host: values["serve.host"],
      port: values["serve.port"],
      sshHost: values["serve.sshHost"],
      sshPort: values["serve.sshPort"],
      open: values["serve.open"],
      rateLimit: values["serve.rateLimit"],
      maxSandboxes: values["serve.maxSandboxes"],
      maxCpus: values["serve.maxCpus"],
      maxMemoryBytes: values["serve.maxMemory"],
      maxBodyBytes: values["serve.maxBody"],
      bodyIdleMs: values["serve.bodyIdleTimeout"],
      timeoutMs: values["serve.timeout"],
      corsOrigins: toList(values["serve.corsOrigins"]),
      pool: values["serve.pool"],
      jwtSecret: values["serve.jwtSecret"],
      jwksUrl: values["serve.jwksUrl"],
      jwtIssuer: values["serve.jwtIssuer"],
      jwtAudience: values["serve.jwtAudience"],
      publicUrl: values["serve.publicUrl"],
    }),
    sidecar: Object.freeze({
      image: values["sidecar.image"],
      isImageSet: isSet("sidecar.image"),
      publicHost: values["sidecar.publicHost"],
      httpPort: values["sidecar.httpPort"],
      ownPorts: values["sidecar.ownPorts"],
      pullImage: values["sidecar.pullImage"],
      idleTimeoutMs: values["sidecar.idleTimeout"],
      maxIdleTimeoutMs: values["sidecar.maxIdleTimeout"],
      ttlMs: values["sidecar.ttl"],
      maxTtlMs: values["sidecar.maxTtl"],
    }),
    gc: Object.freeze({
      intervalMs: values["gc.interval"],
      hotMs: values["gc.hotRetention"],
      warmMs: values["gc.warmRetention"],
      coldMs: values["gc.coldRetention"],
      autoCommit: values["gc.autoCommit"],
    }),
    qos: Object.freeze({
      enabled: values["qos.enabled"],
      intervalMs: values["qos.interval"],
      dryRun: values["qos.dryRun"],
      serviceId: values["qos.serviceId"],
      blueprintId: values["qos.blueprintId"],
    }),
    reaper: Object.freeze({
      intervalMs: values["reaper.interval"],
      busyCpus: values["reaper.busyCpus"],
      snapshot: values["reaper.snapshot"],
    }),
    history: Object.freeze({
      maxBytes: values["history.maxBytes"] || Number.POSITIVE_INFINITY,
    }),
    workspaces: Object.freeze({
      ttlMs: values["workspaces.ttl"],
      max: values["workspaces.max"],
    }),
    snapshot: Object.freeze({
      prefix: values["snapshot.prefix"],
      allow: toList(values["snapshot.allow"]),
      maxBytes: values["snapshot.maxSize"],
    }),
    s3: Object.freeze({
      endpoint: values["s3.endpoint"],
      region: values["s3.region"],
      accessKeyId: values["s3.accessKeyId"],
      secretAccessKey: values["s3.secretAccessKey"],
      sessionToken: values["s3.sessionToken"],
      pathStyle: values["s3.pathStyle"],
    }),
    aws: Object.freeze({
      roles: Object.freeze({ readonly: values["aws.readonlyRole"], readwrite: values["aws.readwriteRole"] }),
      allowedRoles: toList(values["aws.allowedRoles"]),
      allowedServices: toList(values["aws.allowedServices"]),
      users: values["aws.users"],
      sessionMs: values["aws.session"],
      region: values["aws.region"],
      stsEndpoint: values["aws.stsEndpoint"],
      externalId: values["aws.externalId"],
      accessKeyId: values["aws.accessKeyId"],
      secretAccessKey: values["aws.secretAccessKey"],
      sessionToken: values["aws.sessionToken"],
    }),
    logLevel: values.logLevel,
    logFormat: values.logFormat,
    json: values.json,
  });
}

function toList(value: string | undefined): readonly string[] {
  return (value ?? "")
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

function absolute(path: string, cwd: string): string {
  return resolve(cwd, path.startsWith("~/") ? join(homedir(), path.slice(2)) : path);
}

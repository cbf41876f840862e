export * from "./aido.ts";
export { HttpAido, type ServerInfo } from "./client/http-aido.ts";
export {
  type ConnectOptions,
  type ExecResult,
  RunningCommand,
  Sandbox,
  type SandboxFiles,
} from "./client/sandbox.ts";
export type { TransportOptions } from "./client/transport.ts";
export * from "./framed-body.ts";
export * from "./history.ts";
export * from "./protocol/index.ts";
export * from "./run-exec.ts";
export * from "./runs.ts";

export * from "./agents.ts";
export * from "./aido.ts";
export { HttpAido, type ServerInfo } from "./client/http-aido.ts";
export { RunningCommand } from "./client/running-command.ts";
export { type ConnectOptions, type ExecResult, Sandbox } from "./client/sandbox.ts";
export type { SandboxFiles } from "./client/sandbox-files.ts";
export type { SandboxHistory } from "./client/sandbox-history.ts";
export type { SidecarAgentResult, SidecarCommandResult } from "./client/sidecar-answers.ts";
export {
  type NewSidecarTerminal,
  type SidecarAgentRequest,
  SidecarClient,
  type SidecarCommand,
} from "./client/sidecar-client.ts";
export type { SidecarOptions } from "./client/sidecar-request.ts";
export type { TerminalEvent } from "./client/sidecar-terminal-events.ts";
export type { TransportOptions } from "./client/transport.ts";
export * from "./framed-body.ts";
export * from "./gc.ts";
export * from "./history.ts";
export * from "./images.ts";
export * from "./jobs.ts";
export * from "./protocol/index.ts";
export * from "./reaper.ts";
export * from "./run-exec.ts";
export * from "./runs.ts";
export * from "./snapshots.ts";
export * from "./ssh.ts";
export * from "./workflows.ts";
export * from "./workspaces.ts";

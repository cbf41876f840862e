export * from "./aido.ts";
export * from "./history.ts";
export * from "./protocol/index.ts";
export * from "./run-exec.ts";
export * from "./runs.ts";

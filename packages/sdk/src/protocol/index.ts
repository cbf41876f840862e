export * from "./errors.ts";
export * from "./evidence.ts";
export * from "./exec.ts";
export * from "./files.ts";
export * from "./run.ts";
export * from "./sandbox.ts";

export * from "./error.ts";
export * from "./exec.ts";
export * from "./files.ts";
export * from "./history.ts";
export * from "./sandbox.ts";
export * from "./values.ts";

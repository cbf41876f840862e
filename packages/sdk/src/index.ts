export * from "./aido.ts";
export * from "./protocol/index.ts";

export * from "./contract.ts";
export * from "./errors.ts";
export * from "./json.ts";
export * from "./limits.ts";
export * from "./task.ts";
export * from "./wire.ts";

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The sanitizers set aside more memory than a process may have whose data is limited. */
export const IS_SANITIZED = process.env["AIDO_TEST_AGENT"]?.includes("asan") ?? false;

/** The supervisor the tests run: the built one, unless another is named. */
export function agentPath(): string {
  const path =
    process.env["AIDO_TEST_AGENT"] ?? fileURLToPath(new URL("../../dist/aido-agent", import.meta.url));
  if (!existsSync(path)) throw new Error(`${path} is missing: run \`npm run build\` first`);
  return path;
}

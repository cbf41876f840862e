import { readFileSync } from "node:fs";

/** Without the line break that editors put at the end. */
export function readSecretFile(path: string, problems: string[]): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (thrown) {
    problems.push(`AIDO_API_KEY_FILE: ${(thrown as Error).message}`);
    return undefined;
  }
}

import { readFileSync } from "node:fs";

/** Without the line break that editors put at the end. */
export function readSecretFile(variable: string, path: string, problems: string[]): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (thrown) {
    problems.push(`${variable}: ${(thrown as Error).message}`);
    return undefined;
  }
}

import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { readBases } from "../../image/read-dockerfile.ts";
import { isSwarmImage } from "./image-names.ts";
import type { LockFile } from "./lock-files.ts";

export const OWN_DOCKERFILE = ".aimi/Dockerfile.sandbox";

/** The images that a project's own Dockerfile starts from, the swarm's first. Told with file and line when it cannot be taken. */
export function checkOwnDockerfile(text: string): readonly string[] {
  const lines = text.replace(/^\ufeff/, "").split(/\r?\n/);
  const first = lines.findIndex((line) => line.trim() !== "" && !line.trim().startsWith("#"));
  const image = /^FROM\s+(aimi-sandbox\S*)/i.exec(lines[first]?.trim() ?? "")?.[1] ?? "";
  if (!isSwarmImage(image)) {
    const line = first < 0 ? 1 : first + 1;
    throw new AidoError(
      "VALIDATION_ERROR",
      `${OWN_DOCKERFILE}:${line}: the first instruction must be FROM aimi-sandbox:base, or another image of that name`,
      {
        hint: "A worker needs what the base has. Begin with `FROM aimi-sandbox:base` and add to it.",
        details: { field: "dockerfile", file: OWN_DOCKERFILE, line },
      },
    );
  }
  try {
    return readBases(text);
  } catch (thrown) {
    if (!isAidoError(thrown, "VALIDATION_ERROR")) throw thrown;
    const { line = 1 } = thrown.details as { line?: number };
    throw new AidoError(
      thrown.code,
      `${OWN_DOCKERFILE}:${line}: ${thrown.message.replace(/^Line \d+ of the Dockerfile: /, "")}`,
      { hint: thrown.hint, details: { ...thrown.details, file: OWN_DOCKERFILE }, cause: thrown },
    );
  }
}

/** The template with what is to be installed and copied in it. Commands are lists of words, so that no shell reads a name. */
export function fillTemplate(
  template: string,
  project: { found: readonly LockFile[]; hasSource: boolean; hasSettings: boolean },
): string {
  const { found, hasSource, hasSettings } = project;
  const words = (list: readonly string[]) => list.map((word) => JSON.stringify(word)).join(", ");
  const isNeeded = (line: string) => {
    if (/^RUN .*(TOOLS|LOCK_FILES)\]$/.test(line)) return found.length > 0;
    if (/^COPY .* source\/ /.test(line)) return hasSource;
    return /^COPY .* settings\/ /.test(line) ? hasSettings : true;
  };
  return template
    .split("\n")
    .filter(isNeeded)
    .join("\n")
    .replace(/TOOLS(?=\]$)/m, () => words(found.map(({ kind }) => kind)))
    .replace(/LOCK_FILES(?=\]$)/m, () => words(found.map(({ kind, file }) => `${kind}:${file}`)));
}

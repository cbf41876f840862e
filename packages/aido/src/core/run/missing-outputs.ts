import { setImmediate } from "node:timers/promises";
import { compileGlob, globFits } from "./glob.ts";

/** Files looked at before anything else that this process does has its turn: their names are the sandbox's choice. */
const FILES_PER_TURN = 100;

/** The declared outputs that none of the files is. A declared directory is there when anything in it is. */
export async function missingOutputs(
  declared: readonly string[],
  files: readonly string[],
): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const pattern of declared) {
    if (!(await isAnywhere(pattern, files))) missing.push(pattern);
  }
  return missing;
}

async function isAnywhere(pattern: string, files: readonly string[]): Promise<boolean> {
  const plain = pattern.replace(/\/+$/, "");
  const alternatives = compileGlob(plain) ?? [];
  for (const [index, file] of files.entries()) {
    if (file.startsWith(`${plain}/`) || globFits(alternatives, file)) return true;
    if (index % FILES_PER_TURN === FILES_PER_TURN - 1) await setImmediate();
  }
  return false;
}

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { AdapterBed } from "./adapter-bed.ts";

/** A program that leaves a mark when anything starts it. */
export function trap(bed: AdapterBed): { program: string; isSprung: () => boolean } {
  const mark = join(bed.bed.directory, "sprung");
  const program = bed.program("trap", `echo "$0 $*" >> ${mark}; cat`);
  return { program, isSprung: () => existsSync(mark) };
}

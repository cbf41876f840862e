import type { Command } from "commander";
import type { CliContext } from "../context.ts";

/** What a command's declaration hands over: the work itself is imported when it is asked for, not before. */
export interface Action {
  run: (context: CliContext) => Promise<number>;
  /** The command passes another's exit code through, so aido's own failures are 125. */
  passesExitCode?: boolean;
  /** Every failure is exit code 1, as the scripts that call it expect. */
  failsWithOne?: boolean;
  /** With `--json` it prints one value per line, so a failure is the last of them. */
  streams?: boolean;
}

/** The commands whose misuse is exit code 1 as well. */
export const failsWithOne = new WeakSet<Command>();

export type Act = (action: Action) => Promise<void>;

export const collect = (value: string, before: string[] | undefined): string[] => [...(before ?? []), value];

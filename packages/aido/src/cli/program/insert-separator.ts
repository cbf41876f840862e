import type { Command, Option } from "commander";

/**
 * Puts `--` before the command of `aido exec [options] <sandbox> [options] <command> …` when the user left it
 * away, so that the command's own options are never taken for aido's.
 */
export function insertSeparator(argv: readonly string[], program: Command): readonly string[] {
  const exec = program.commands.find((command) => command.name() === "exec");
  const options = [...program.options, ...(exec?.options ?? [])];
  const positionals: number[] = [];
  for (let index = 0; index < argv.length; index += 1) {
    const word = argv[index] ?? "";
    if (word === "--") return argv;
    if (word.startsWith("-") && word !== "-") {
      if (takesNext(word, options)) index += 1;
      continue;
    }
    positionals.push(index);
    if (positionals.length === 1 && word !== "exec") return argv;
    if (positionals.length === 3) return [...argv.slice(0, index), "--", ...argv.slice(index)];
  }
  return argv;
}

/** The first word that is neither an option nor the value of one. */
export function commandWord(argv: readonly string[], options: readonly Option[]): string | undefined {
  for (let index = 0; index < argv.length; index += 1) {
    const word = argv[index] ?? "";
    if (!word.startsWith("-")) return word;
    if (takesNext(word, options)) index += 1;
  }
  return undefined;
}

/** Whether the word is an option whose value is the next word. `-it` is two, and only the last may take one. */
function takesNext(word: string, options: readonly Option[]): boolean {
  if (word.startsWith("--")) {
    return !word.includes("=") && options.some((option) => option.long === word && option.required);
  }
  for (let at = 1; at < word.length; at += 1) {
    const option = options.find(({ short }) => short === `-${word[at]}`);
    if (option?.required) return at === word.length - 1;
  }
  return false;
}

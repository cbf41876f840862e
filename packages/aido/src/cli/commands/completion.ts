import { AidoError } from "@aido/sdk/protocol";
import type { Command } from "commander";
import type { CliContext } from "../context.ts";

/** A command as completion sees it: the words that can follow it. */
interface Node {
  path: readonly string[];
  words: readonly { name: string; about: string }[];
  sandbox: boolean;
}

const SHELLS = { bash, zsh, fish } as const;

export async function completion(context: CliContext, program: Command, shell: string): Promise<number> {
  const known = Object.entries(SHELLS).find(([name]) => name === shell);
  if (known === undefined) {
    throw new AidoError("VALIDATION_ERROR", `There is no completion for ${shell}`, {
      hint: `Choose one of: ${Object.keys(SHELLS).join(", ")}.`,
    });
  }
  await context.stdout.write(known[1](nodes(program, [])));
  return 0;
}

function nodes(command: Command, path: readonly string[]): Node[] {
  const children = command.commands.filter((child) => !("_hidden" in child && child._hidden));
  const options = [...command.options, ...rootOf(command).options].filter((option) => !option.hidden);
  const own: Node = {
    path,
    words: [
      ...children.map((child) => ({ name: child.name(), about: child.summary() || child.description() })),
      ...options.map((option) => ({ name: option.long ?? option.short ?? "", about: option.description })),
    ].filter((word, index, all) => all.findIndex(({ name }) => name === word.name) === index),
    sandbox: command.registeredArguments.some((argument) => argument.name() === "sandbox"),
  };
  return [own, ...children.flatMap((child) => nodes(child, [...path, child.name()]))];
}

function rootOf(command: Command): Command {
  return command.parent === null ? command : rootOf(command.parent);
}

function bash(all: readonly Node[]): string {
  const cases = all.map(({ path, words, sandbox }) => {
    const list = words.map(({ name }) => name).join(" ");
    const ids = sandbox ? " $(aido ls --quiet 2>/dev/null)" : "";
    return `    "${path.join(" ")}") words="${list}${ids}" ;;`;
  });
  return `# bash completion for aido; load it with: source <(aido completion bash)
_aido() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" word words index
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    case " ${paths(all)} " in
      *" \${path:+$path/}$word "*) path="\${path:+$path/}$word" ;;
    esac
  done
  case "\${path//\\// }" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _aido aido
`;
}

function zsh(all: readonly Node[]): string {
  return `#compdef aido
# zsh completion for aido; load it with: source <(aido completion zsh)
autoload -U +X bashcompinit && bashcompinit
${bash(all)}`;
}

function fish(all: readonly Node[]): string {
  const lines = all.flatMap(({ path, words, sandbox }) => {
    const names =
      path.length === 0 ? all.filter((node) => node.path.length === 1).map((node) => node.path[0]) : [];
    const when =
      path.length === 0
        ? `not __fish_seen_subcommand_from ${names.join(" ")}`
        : path.map((word) => `__fish_seen_subcommand_from ${word}`).join("; and ");
    const entries = words.map(({ name, about }) =>
      name.startsWith("--")
        ? `complete -c aido -n '${when}' -l ${name.slice(2)} -d ${quote(about)}`
        : `complete -c aido -f -n '${when}' -a ${quote(name)} -d ${quote(about)}`,
    );
    return sandbox
      ? [...entries, `complete -c aido -f -n '${when}' -a '(aido ls --quiet 2>/dev/null)'`]
      : entries;
  });
  return `# fish completion for aido; load it with: aido completion fish | source\n${lines.join("\n")}\n`;
}

function paths(all: readonly Node[]): string {
  return all
    .filter(({ path }) => path.length > 0)
    .map(({ path }) => path.join("/"))
    .join(" ");
}

function quote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\n", " ")}'`;
}

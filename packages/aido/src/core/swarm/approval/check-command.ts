import { APPROVAL_POLICY, type ApprovalPolicy, type ApprovalRule } from "./policy.ts";
import { splitCommand } from "./split-command.ts";

export type Approval =
  | { approved: true; rule: string; words: readonly string[] }
  | { approved: false; reason: string };

export interface ApprovalOptions {
  /** Whether a path of the command is a directory inside the project, links followed. */
  isInside: (path: string) => Promise<boolean>;
  policy?: ApprovalPolicy;
}

/** Whether the command may run unasked: several words as they are, a single one as a whole command line. */
export async function checkCommand(given: readonly string[], options: ApprovalOptions): Promise<Approval> {
  const { policy = APPROVAL_POLICY, isInside } = options;
  const split = splitCommand(given);
  if ("reason" in split) return refuse(split.reason);
  const { words } = split;
  if (words.some((word) => word.startsWith("--privileged"))) return refuse("--privileged is never approved");
  let furthest = { at: -1, reason: "" };
  for (const rule of policy.allow) {
    const tried = match(rule, words, policy);
    if ("reason" in tried) {
      if (tried.at > furthest.at) furthest = tried;
      continue;
    }
    for (const path of tried.paths) {
      if (!(await isInside(path))) return refuse(`${path} is not a directory inside this project`);
    }
    return { approved: true, rule: rule.rule, words };
  }
  return refuse(furthest.at < 1 ? `${words[0]} is not a command of the policy` : furthest.reason);
}

type Match = { paths: string[] } | { at: number; reason: string };

function match(
  { command, options = {}, needsOption }: ApprovalRule,
  words: readonly string[],
  policy: ApprovalPolicy,
): Match {
  const paths: string[] = [];
  let at = 0;
  for (const expected of command) {
    const word = words[at];
    const isOptional = expected.startsWith("[");
    const shape = /^\[?<(\w+)>\]?$/.exec(expected)?.[1];
    const fits =
      word !== undefined &&
      (shape === undefined ? expected.split("|").includes(word) : hasShape(policy, shape, word));
    if (fits) {
      if (shape === "projectPath") paths.push(word);
      at += 1;
    } else if (!isOptional) {
      const what = shape === undefined ? expected.split("|").join(" or ") : `<${shape}>`;
      return {
        at,
        reason: word === undefined ? `${what} is missing` : `${word} stands where ${what} must be`,
      };
    }
  }
  const seen = new Set<string>();
  while (at < words.length) {
    const name = words[at] ?? "";
    const shape = Object.hasOwn(options, name) ? options[name] : undefined;
    if (shape === undefined || seen.has(name)) {
      return { at, reason: `${name} is more than the policy allows there` };
    }
    seen.add(name);
    const value = words[at + 1];
    if (shape !== null && (value === undefined || !hasShape(policy, shape, value))) {
      return { at: at + 1, reason: `${value ?? "nothing"} stands where the value of ${name} must be` };
    }
    at += shape === null ? 1 : 2;
  }
  if (needsOption && seen.size === 0) return { at, reason: "an option is missing" };
  return { paths };
}

function hasShape(policy: ApprovalPolicy, shape: string, word: string): boolean {
  const pattern = policy.words[shape];
  if (pattern === undefined) throw new Error(`the policy has no words of shape ${shape}`);
  return new RegExp(`^(?:${pattern})$`).test(word) && !word.split("/").includes("..");
}

function refuse(reason: string): Approval {
  return { approved: false, reason };
}

import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { AidoError } from "@aido/sdk/protocol";
import { hostUser } from "./host-user.ts";
import type { Machine, MachineOptions } from "./machine.ts";
import { bootId } from "./process-table.ts";
import { trySandbox } from "./try-sandbox.ts";
import { namespaceHint } from "./user-namespaces.ts";

type CheckedBwrap = Pick<Machine, "version" | "canSizeTemporary" | "canSetPermissions" | "userNamespaces">;

/**
 * Tries which kind of sandbox bubblewrap can make here. Trying costs as much as a whole start, so a success is
 * remembered until bubblewrap or the boot changes; that user namespaces are refused is asked anew by every process,
 * because it may be allowed any moment and sandboxes are better with them.
 */
export async function checkBwrap(bwrap: string, options: MachineOptions): Promise<CheckedBwrap> {
  const { root, agentPath, isRoot } = options;
  mkdirSync(root, { recursive: true, mode: 0o700 });
  const user = isRoot ? hostUser(root) : undefined;
  const key = `2 ${bootId()} ${bwrap} ${statSync(bwrap).mtimeMs} ${user ?? process.getuid?.()}`;
  const remembered = recall(root, key);
  const mayHave = options.userNamespaces !== false;
  if (mayHave && remembered?.userNamespaces === true) return remembered;

  const attempt = { bwrap, agentPath, root, user };
  const refusal = mayHave ? await trySandbox({ ...attempt, userNamespace: true }) : "left out";
  if (refusal === undefined) return remember(root, key, { ...(await ask(bwrap)), userNamespaces: true });
  if (!isRoot) throw unavailable(refusal);
  if (remembered?.userNamespaces === false) return remembered;
  const failure = await trySandbox({ ...attempt, userNamespace: false });
  if (failure !== undefined) throw unavailable(mayHave ? refusal : failure);
  const checked = await ask(bwrap);
  if (!checked.canSetPermissions) {
    throw new AidoError(
      "RUNTIME_UNAVAILABLE",
      `User namespaces are refused here, and without them ${checked.version} is too old: it takes 0.5 or newer`,
      { hint: namespaceHint((path) => readFileSync(path, "utf8")) },
    );
  }
  return remember(root, key, { ...checked, userNamespaces: false });
}

async function ask(bwrap: string): Promise<Omit<CheckedBwrap, "userNamespaces">> {
  const say = async (option: string) =>
    (await promisify(execFile)(bwrap, [option], { timeout: 10_000 })).stdout;
  const [version, help] = await Promise.all([say("--version"), say("--help")]);
  return {
    version: version.trim(),
    canSizeTemporary: help.includes("--size "),
    canSetPermissions: help.includes("--perms "),
  };
}

function recall(root: string, key: string): CheckedBwrap | undefined {
  try {
    const { key: known, ...checked } = JSON.parse(readFileSync(memory(root), "utf8")) as CheckedBwrap & {
      key: string;
    };
    return known === key ? checked : undefined;
  } catch {
    return undefined; // nothing is known yet
  }
}

function remember(root: string, key: string, checked: CheckedBwrap): CheckedBwrap {
  const temporary = `${memory(root)}.${process.pid}`;
  writeFileSync(temporary, JSON.stringify({ key, ...checked }));
  renameSync(temporary, memory(root));
  return checked;
}

function memory(root: string): string {
  return join(root, ".checked.json");
}

function unavailable(failure: string): AidoError {
  return new AidoError(
    "RUNTIME_UNAVAILABLE",
    `bubblewrap cannot make namespaces on this machine: ${failure}`,
    { hint: namespaceHint((path) => readFileSync(path, "utf8")) },
  );
}

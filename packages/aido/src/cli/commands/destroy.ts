import type { Aido } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { note, printResult } from "../output/print.ts";
import { printable } from "../output/printable.ts";
import { allSandboxes } from "./all-sandboxes.ts";

export interface DestroyOptions {
  sandbox?: string;
  all?: boolean;
  /** Whether no name at all means the newest sandbox; otherwise it is refused. */
  latest?: boolean;
}

const AT_ONCE = 4;

interface Outcome {
  id: string;
  error?: unknown;
}

/** Goes on after a failure, so that one stuck sandbox does not keep the others alive; the first failure is reported. */
export async function destroy(
  context: CliContext,
  sandboxes: readonly string[],
  options: DestroyOptions,
): Promise<number> {
  const references = [...sandboxes, ...(options.sandbox === undefined ? [] : [options.sandbox])];
  if (options.all && references.length > 0) {
    throw new AidoError("VALIDATION_ERROR", "--all and the name of a sandbox exclude each other", {
      hint: "Leave one of them away.",
    });
  }
  const aido = await context.open({ sandbox: references[0] });
  const ids = await resolve(aido, references, options);
  const queue = [...ids];
  const outcomes: Outcome[] = [];
  const worker = async (): Promise<void> => {
    for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
      context.progress.show(`Destroying ${id}`);
      outcomes.push(await destroyOne(aido, id));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  context.progress.clear();
  return report(context, ids, outcomes);
}

async function resolve(
  aido: Aido,
  references: readonly string[],
  options: DestroyOptions,
): Promise<readonly string[]> {
  if (references.length > 0) {
    const found = [];
    for (const reference of new Set(references)) found.push((await aido.sandboxes.get(reference)).id);
    return [...new Set(found)];
  }
  const states = ["pending", "running", "stopped"] as const;
  if (options.all) return (await allSandboxes(aido, { states })).map(({ id }) => id);
  const [newest] = options.latest ? await aido.sandboxes.list({ states, limit: 1 }) : [];
  if (newest) return [newest.id];
  throw options.latest
    ? new AidoError("CONTAINER_NOT_FOUND", "There is no sandbox to destroy", {
        hint: "`aido ls` lists sandboxes.",
      })
    : new AidoError("VALIDATION_ERROR", "Which sandbox?", {
        hint: "Name one or more sandboxes (`aido ls` lists them), or write --all.",
      });
}

async function destroyOne(aido: Aido, id: string): Promise<Outcome> {
  try {
    await aido.sandboxes.destroy(id);
    return { id };
  } catch (error) {
    return { id, error };
  }
}

async function report(
  context: CliContext,
  ids: readonly string[],
  outcomes: readonly Outcome[],
): Promise<number> {
  const destroyed = ids.filter((id) => outcomes.some((each) => each.id === id && each.error === undefined));
  const failure = outcomes.find(({ error }) => error !== undefined);
  if (failure === undefined || !context.globals.json) {
    await printResult(context, { destroyed }, () =>
      destroyed.map((id) => `Destroyed ${printable(id)}\n`).join(""),
    );
  }
  if (ids.length === 0) await note(context, "There was no sandbox to destroy.");
  if (failure) throw failure.error;
  return 0;
}

import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import {
  addContainer,
  findContainer,
  type NewContainer,
  removeContainer,
  removeEnded,
  startSwarm,
  updateContainer,
} from "../../core/swarm/state/change-state.ts";
import {
  checkContainer,
  checkContainerName,
  readChanges,
  type WrittenChanges,
} from "../../core/swarm/state/check-container.ts";
import { SwarmStateFile } from "../../core/swarm/state/swarm-state-file.ts";
import type { CliContext } from "../context.ts";
import { printResult } from "../output/print.ts";
import { printable, printableJson } from "../output/printable.ts";
import { interruptible } from "./interrupt.ts";
import { reconciledState } from "./swarm/reconciled.ts";

export interface SwarmOptions {
  dir?: string;
}

export async function swarmInit(
  context: CliContext,
  options: SwarmOptions & { force?: boolean },
): Promise<number> {
  return await withState(context, options, async (file) => {
    const swarm = { swarmId: randomUUID(), now: context.now(), force: options.force ?? false };
    await printJson(context, await file.replace((before) => startSwarm(before, swarm)));
  });
}

export async function swarmAdd(
  context: CliContext,
  given: NewContainer,
  options: SwarmOptions,
): Promise<number> {
  const added = checkContainer(given);
  return await withState(context, options, async (file) => {
    const state = await file.update((before) => addContainer(before, added, context.now()));
    await printJson(context, findContainer(state, added.containerName));
  });
}

export async function swarmUpdate(
  context: CliContext,
  given: string,
  options: SwarmOptions & WrittenChanges,
): Promise<number> {
  const name = checkContainerName(given);
  const changes = readChanges(options);
  return await withState(context, options, async (file) => {
    const state = await file.update((before) => updateContainer(before, name, changes, context.now()));
    await printJson(context, findContainer(state, name));
  });
}

export async function swarmRemove(
  context: CliContext,
  given: string,
  options: SwarmOptions,
): Promise<number> {
  const name = checkContainerName(given);
  return await withState(context, options, async (file) => {
    await file.update((before) => removeContainer(before, name, context.now()));
    await printResult(context, { removed: name }, () => `Removed container: ${name}\n`);
  });
}

export async function swarmStatus(context: CliContext, options: SwarmOptions): Promise<number> {
  return await interruptible(context, async (signal) => {
    await printJson(context, await reconciledState(context, { dir: options.dir, signal }));
    return 0;
  });
}

export async function swarmList(context: CliContext, options: SwarmOptions): Promise<number> {
  return await interruptible(context, async (signal) => {
    const { containers } = await reconciledState(context, { dir: options.dir, signal });
    const rows = containers.map(({ containerName, status }) => ({ containerName, status }));
    await printResult(context, rows, () =>
      rows
        .map(({ containerName, status }) => [containerName, ...(context.globals.quiet ? [] : [status])])
        .map((cells) => `${cells.map(printable).join("\t")}\n`)
        .join(""),
    );
    return 0;
  });
}

export async function swarmCleanup(context: CliContext, options: SwarmOptions): Promise<number> {
  return await withState(context, options, async (file) => {
    let removed = 0;
    await file.update((before) => {
      const after = removeEnded(before, context.now());
      removed = before.containers.length - after.containers.length;
      return after;
    });
    await context.stdout.write(`${printableJson({ removed })}\n`);
  });
}

async function withState(
  context: CliContext,
  { dir }: SwarmOptions,
  work: (file: SwarmStateFile) => Promise<void>,
): Promise<number> {
  return await interruptible(context, async (signal) => {
    await work(new SwarmStateFile({ project: resolve(context.cwd, dir ?? "."), signal }));
    return 0;
  });
}

/** JSON with and without `--json`: these commands are made for scripts. */
async function printJson(context: CliContext, value: unknown): Promise<void> {
  await context.stdout.write(`${printableJson(value, 2)}\n`);
}

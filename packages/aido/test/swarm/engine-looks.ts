import { expect } from "vitest";
import { docker } from "../backends/docker-cli.ts";
import type { EngineBed } from "./workers-bed.ts";

/** What the engine says of a container, whole. */
export const inspect = async (name: string) => JSON.parse(await docker(["inspect", name]))[0];
/** Ids of the networks whose name has this in it. */
export const networks = (name: string) => docker(["network", "ls", "-q", "--filter", `name=${name}`]);

/** Nothing of the worker is on the engine or in the records. */
export async function expectNothing({ workers, name }: EngineBed): Promise<void> {
  expect(await docker(["ps", "-aq", "--filter", `name=${name}`])).toBe("");
  expect(await networks(name)).toBe("");
  expect(await workers.list()).toEqual([]);
}

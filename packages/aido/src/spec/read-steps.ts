import type { StepSpec } from "@aido/sdk/protocol";
import { isInnerPath } from "./inner-path.ts";
import { readDuration } from "./read-duration.ts";
import { readEnv } from "./read-env.ts";
import type { SpecReader, SpecValue } from "./spec-reader.ts";

const KEYS = ["name", "task", "timeout", "env"];
const MAX_STEPS = 100;

/** A pipeline: ordered tasks, each a project file, with names that differ. */
export function readSteps(reader: SpecReader, value: SpecValue): readonly StepSpec[] | undefined {
  const items = reader.list(value, "{ name: build, task: build.sh }");
  if (items === undefined) return undefined;
  if (items.length === 0) reader.problem(value, "steps is empty", "Add a step, or remove steps.");
  if (items.length > MAX_STEPS) reader.problem(value, `more than ${MAX_STEPS} steps`, "Join some of them.");
  const steps: StepSpec[] = [];
  const names = new Set<string>();
  for (const item of items.slice(0, MAX_STEPS)) {
    const step = readStep(reader, item, names);
    if (step !== undefined) steps.push(step);
  }
  return steps;
}

function readStep(reader: SpecReader, item: SpecValue, names: Set<string>): StepSpec | undefined {
  const keys = reader.map(item, KEYS);
  if (keys === undefined) return undefined;
  const name = required(reader, { item, keys, key: "name", example: "name: build" });
  const task = required(reader, { item, keys, key: "task", example: "task: build.sh" });
  const nameAt = keys.get("name");
  const taskAt = keys.get("task");
  if (name !== undefined && nameAt !== undefined) {
    if (!/^[a-z0-9][a-z0-9-]{0,39}$/.test(name)) {
      reader.problem(nameAt, `${nameAt.path} may have up to 40 of a-z, 0-9 and "-"`, "Write name: build.");
    } else if (names.has(name)) {
      reader.problem(nameAt, "two steps have this name", "Give each step a name of its own.");
    }
    names.add(name);
  }
  if (task !== undefined && taskAt !== undefined && !isInnerPath(task)) {
    reader.problem(taskAt, `${taskAt.path} leads out of the project`, 'Write a relative path without "..".');
  }
  const timeout = keys.get("timeout");
  const env = keys.get("env");
  const timeoutMs = timeout === undefined ? 0 : (readDuration(reader, timeout) ?? 0);
  const variables = env === undefined ? {} : (readEnv(reader, env) ?? {});
  if (name === undefined || task === undefined) return undefined;
  return { name, task: task.replace(/^(\.\/)+/, ""), timeoutMs, env: variables };
}

function required(
  reader: SpecReader,
  at: { item: SpecValue; keys: ReadonlyMap<string, SpecValue>; key: string; example: string },
): string | undefined {
  const value = at.keys.get(at.key);
  if (value !== undefined) return reader.text(value, at.example);
  reader.problem(at.item, `${at.item.path} has no ${at.key}`, `Add ${at.example}.`);
  return undefined;
}

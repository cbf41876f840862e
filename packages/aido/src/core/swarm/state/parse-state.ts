import { AidoError } from "@aido/sdk/protocol";
import { checkSchema } from "./check-schema.ts";
import type { SwarmState } from "./swarm-state.ts";
import { SWARM_STATE_SCHEMA } from "./swarm-state-schema.ts";

/** The state in a file's bytes. What is not one is left to its owner: nothing is repaired and nothing guessed. */
export function parseState(bytes: Uint8Array, shown: string): SwarmState {
  const value = parseJson(bytes, shown);
  const problems = checkSchema(value, SWARM_STATE_SCHEMA);
  const [unknown] = problems.filter(({ isUnknown }) => isUnknown);
  if (unknown !== undefined) {
    throw new AidoError(
      "SWARM_STATE_TOO_NEW",
      `${shown} has the field ${JSON.stringify(unknown.field)}, which this version of aido does not know`,
      {
        hint: "It seems to be written by a newer version: use that one. The file was left as it is.",
        details: { field: unknown.field },
      },
    );
  }
  if (problems.length > 0) {
    const said = problems.map(({ field, message }) => `${field === "" ? "it" : field} ${message}`);
    throw broken(shown, said.join("; "));
  }
  const state = value as SwarmState;
  const names = new Set<string>();
  for (const [index, { containerName }] of state.containers.entries()) {
    if (names.has(containerName))
      throw broken(shown, `containers[${index}].containerName is there twice: ${containerName}`);
    names.add(containerName);
  }
  return state;
}

function parseJson(bytes: Uint8Array, shown: string): unknown {
  if (bytes.length === 0) throw broken(shown, "it is empty");
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw broken(shown, `it is not JSON, or only a part of it (${(cause as Error).message})`, cause);
  }
}

function broken(shown: string, why: string, cause?: unknown): AidoError {
  return new AidoError("SWARM_STATE_BROKEN", `${shown} is not a swarm state: ${why}`, {
    hint: "The file was left as it is. Repair it, or move it away and start anew with `aido swarm-init`.",
    cause,
  });
}

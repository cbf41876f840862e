import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type { Driver } from "../../../core/driver/driver.ts";

/** One of several engines. */
export interface AnEngine {
  readonly address: string;
  readonly driver: Driver;
  /** Whether it can mount directories of this machine. */
  readonly local: boolean;
}

export interface Answers<T> {
  found: (readonly [AnEngine, T])[];
  silent: { engine: AnEngine; error: AidoError }[];
}

/** An engine that hangs holds up the others no longer. */
const ANSWER_LIMIT_MS = 5_000;

/** Asks all engines at once. Those that do not answer are told apart; any other failure is the caller's. */
export async function answers<T>(
  engines: readonly AnEngine[],
  ask: (engine: AnEngine) => Promise<T>,
): Promise<Answers<T>> {
  const result: Answers<T> = { found: [], silent: [] };
  const asked = engines.map(async (engine) => ({ engine, value: await limited(engine, ask(engine)) }));
  for (const [index, one] of (await Promise.allSettled(asked)).entries()) {
    if (one.status === "fulfilled") result.found.push([one.value.engine, one.value.value]);
    else if (isAidoError(one.reason, "RUNTIME_UNAVAILABLE"))
      result.silent.push({ engine: engines[index] as AnEngine, error: one.reason });
    else throw one.reason;
  }
  return result;
}

async function limited<T>({ address }: AnEngine, answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `Docker at ${address} did not answer within ${ANSWER_LIMIT_MS / 1000} s`;
    timer = setTimeout(() => reject(new AidoError("RUNTIME_UNAVAILABLE", message)), ANSWER_LIMIT_MS);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

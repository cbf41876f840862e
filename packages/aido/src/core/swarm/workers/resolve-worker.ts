import { AidoError } from "@aido/sdk/protocol";
import { shortWorkerName } from "./worker-name.ts";

/** The one worker that is meant: by its name, by what it is called for short, or by how either begins. */
export function resolveWorker(reference: string, names: Iterable<string>): string {
  const known = [...new Set(names)].sort();
  const exact =
    known.find((name) => name === reference) ?? known.find((name) => shortWorkerName(name) === reference);
  if (exact !== undefined) return exact;
  const begins = known.filter(
    (name) => name.startsWith(reference) || shortWorkerName(name).startsWith(reference),
  );
  const [only, ...others] = reference === "" ? [] : begins;
  if (only === undefined) {
    const hint =
      known.length === 0 ? "There is no worker yet." : `These are: ${known.map(shortWorkerName).join(", ")}.`;
    throw new AidoError("CONTAINER_NOT_FOUND", `No worker is called ${JSON.stringify(reference)}`, {
      hint,
      details: { reference },
    });
  }
  if (others.length === 0) return only;
  throw new AidoError(
    "CONTAINER_AMBIGUOUS",
    `${begins.length} workers are called ${JSON.stringify(reference)}…`,
    {
      hint: `Write more of the name: ${begins.map(shortWorkerName).join(", ")}.`,
      details: { reference, candidates: begins },
    },
  );
}

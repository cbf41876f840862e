import { createHash } from "node:crypto";
import { basename } from "node:path";
import { AidoError } from "@aido/sdk/protocol";

const PREFIX = "aimi-swarm-";
/** With the prefix and `-net` of its network behind it, what every engine and every tool takes as a name. */
const MOST_SLUG = 48;
const DATE = /^\d{4}-\d{2}-\d{2}-/;
const SUFFIX = /(-tasks)?\.json$/;

/** The worker of a task file: its name without the date before and `-tasks.json` behind it. */
export function workerName(taskFilePath: string): string {
  const stem = basename(taskFilePath).replace(SUFFIX, "").replace(DATE, "");
  const slug = stem
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "");
  if (slug === "") {
    throw new AidoError(
      "VALIDATION_ERROR",
      `${JSON.stringify(taskFilePath)} has no name for a worker in it`,
      {
        hint: "Call the file YYYY-MM-DD-<feature>-tasks.json.",
      },
    );
  }
  return PREFIX + (slug.length <= MOST_SLUG ? slug : shortened(slug));
}

/** A worker as people call it. */
export function shortWorkerName(name: string): string {
  return name.startsWith(PREFIX) && name !== PREFIX ? name.slice(PREFIX.length) : name;
}

/** The exec that is the adapter of a worker: the same whoever asks, so that it is started once. */
export function adapterExecId(swarmId: string, name: string): string {
  return `adapter-${createHash("sha256").update(`${swarmId}\n${name}`).digest("hex").slice(0, 24)}`;
}

/** Two long names that begin alike stay two. */
function shortened(slug: string): string {
  const rest = createHash("sha256").update(slug).digest("hex").slice(0, 8);
  return `${slug.slice(0, MOST_SLUG - rest.length - 1).replace(/-+$/, "")}-${rest}`;
}

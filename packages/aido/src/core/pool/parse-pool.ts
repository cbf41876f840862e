import { AidoError, type CreateSandbox, ISOLATIONS, type Isolation } from "@aido/sdk/protocol";

/** How many sandboxes of a kind are kept ready. */
export interface PoolSpec {
  readonly request: CreateSandbox;
  readonly size: number;
}

const MAX_SIZE = 1000;
const SHORT = /^([^=\s]+)=(\d{1,4})$/;
const LIMITS = ["cpus", "memoryBytes", "pids", "diskBytes", "openFiles", "outputBytes"];
const FIELDS = ["image", "size", "isolation", "limits", "network", "history"];
const HINT = 'Write it as `python=4,node=2`, or as JSON: [{"image":"python","size":4,"limits":{"cpus":1}}].';

/** `python=4,node=2`, or a JSON list for what else tells kinds apart. Empty text means no pool. */
export function parsePool(text: string | undefined): readonly PoolSpec[] {
  const given = text?.trim() ?? "";
  if (given === "") return [];
  return given.startsWith("[") ? fromJson(given) : given.split(",").map((item) => fromShort(item.trim()));
}

function fromShort(item: string): PoolSpec {
  const match = SHORT.exec(item);
  if (match === null) throw wrong(`"${item.slice(0, 80)}" is not an image and a number`);
  return spec(String(match[1]), Number(match[2]), {});
}

function fromJson(text: string): readonly PoolSpec[] {
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch (cause) {
    throw wrong("it is not JSON", cause);
  }
  if (!Array.isArray(list)) throw wrong("it is not a list");
  return list.map((item: unknown) => fromItem(item));
}

function fromItem(item: unknown): PoolSpec {
  if (typeof item !== "object" || item === null) throw wrong("each entry must be an object");
  const entry = item as Record<string, unknown>;
  const unknown = Object.keys(entry).find((name) => !FIELDS.includes(name));
  if (unknown !== undefined) throw wrong(`there is no field ${JSON.stringify(unknown)}`);
  const { image, size, isolation, limits, network, history } = entry;
  if (typeof image !== "string") throw wrong("each entry needs an image");
  if (isolation !== undefined && !ISOLATIONS.includes(isolation as Isolation)) {
    throw wrong(`isolation is one of ${ISOLATIONS.join(", ")}`);
  }
  if (network !== undefined && network !== "none" && network !== "bridge") {
    throw wrong("network is none or bridge");
  }
  if (history !== undefined && typeof history !== "boolean") throw wrong("history is true or false");
  return spec(image, size, {
    ...(isolation === undefined ? {} : { isolation: isolation as Isolation }),
    ...(network === undefined ? {} : { network }),
    ...(history === undefined ? {} : { history }),
    ...(limits === undefined ? {} : { limits: toLimits(limits) }),
  });
}

function toLimits(value: unknown): NonNullable<CreateSandbox["limits"]> {
  if (typeof value !== "object" || value === null) throw wrong("limits is an object");
  for (const [name, limit] of Object.entries(value)) {
    if (!LIMITS.includes(name)) throw wrong(`there is no limit ${JSON.stringify(name)}`);
    if (typeof limit !== "number") throw wrong(`the limit ${name} is a number`);
  }
  return value;
}

/** With the defaults of a sandbox that is asked for over HTTP, so that a plain request finds one. */
function spec(image: string, size: unknown, rest: CreateSandbox): PoolSpec {
  if (typeof size !== "number" || !Number.isInteger(size) || size < 1 || size > MAX_SIZE) {
    throw wrong(`the size of ${image.slice(0, 80)} must be 1 to ${MAX_SIZE}`);
  }
  return { request: { profile: "server", history: true, ...rest, image }, size };
}

function wrong(why: string, cause?: unknown): AidoError {
  return new AidoError("INVALID_CONFIG", `The setting serve.pool cannot be used: ${why}`, {
    hint: HINT,
    cause,
  });
}

import { AidoError } from "@aido/sdk/protocol";
import { CONFLICT, ignoring, NOT_FOUND } from "./answer-status.ts";
import type { Engine } from "./engine.ts";
import { LABEL } from "./labels.ts";

/** What sandboxes with the network `bridge` are connected to. One for the whole engine, made when it is first needed. */
export const SHARED_NETWORK = "aido-sandboxes";
const WITHOUT_NEIGHBOURS = { "com.docker.network.bridge.enable_icc": "false" };
const looking = new WeakMap<Engine, Promise<void>>();

interface RawNetwork {
  Options?: Record<string, string> | null;
}

/**
 * A bridge that leads outside and not from one sandbox to another, whoever they belong to: on the engine's own bridge all
 * containers reach each other. It stays when the last sandbox goes, so that nobody removes it while another begins.
 */
export function ensureSharedNetwork(engine: Engine): Promise<void> {
  // An engine that is asked for it twice at once may make two of the same name, and then starts nothing on either.
  const asked = looking.get(engine) ?? ensure(engine).finally(() => looking.delete(engine));
  looking.set(engine, asked);
  return asked;
}

async function ensure(engine: Engine): Promise<void> {
  const found = await inspect(engine);
  if (found !== undefined) return refuseOther(found);
  const action = {
    doing: `creating the network ${SHARED_NETWORK}`,
    code: "CONTAINER_CREATION_FAILED",
  } as const;
  await engine.call(action, () =>
    engine.docker
      .createNetwork({
        Name: SHARED_NETWORK,
        CheckDuplicate: true,
        Driver: "bridge",
        Options: WITHOUT_NEIGHBOURS,
        Labels: { [LABEL.network]: "shared" },
      })
      .catch(ignoring(CONFLICT)),
  );
  await keepOldest(engine);
}

/** Another process may have asked at the same moment. All who look come to the same. */
async function keepOldest(engine: Engine): Promise<void> {
  const filters = { name: [SHARED_NETWORK] };
  const found = await engine.call({ doing: "listing networks" }, (abortSignal) =>
    engine.docker.listNetworks({ filters, abortSignal }),
  );
  const age = ({ Created, Id }: (typeof found)[number]) => `${Created} ${Id}`;
  const same = found
    .filter(({ Name }) => Name === SHARED_NETWORK)
    .sort((one, other) => (age(one) < age(other) ? -1 : 1));
  for (const { Id } of same.slice(1)) {
    const action = { doing: "removing a second network of the same name" };
    await engine.call(action, () => engine.docker.getNetwork(Id).remove().catch(ignoring(NOT_FOUND)));
  }
}

/** Its options; undefined when there is none. */
async function inspect(engine: Engine): Promise<Record<string, string> | undefined> {
  const network = engine.docker.getNetwork(SHARED_NETWORK);
  // The library's types leave out the options that its code takes.
  const ask = network.inspect.bind(network) as unknown as (options: object) => Promise<RawNetwork>;
  const action = { doing: `looking at the network ${SHARED_NETWORK}` };
  const found = await engine.call(action, (abortSignal) => ask({ abortSignal }).catch(ignoring(NOT_FOUND)));
  return found === undefined ? undefined : (found.Options ?? {});
}

/** On a network of that name which somebody else has made, sandboxes might reach each other. */
function refuseOther(options: Readonly<Record<string, string>>): void {
  if (Object.entries(WITHOUT_NEIGHBOURS).every(([key, value]) => options[key] === value)) return;
  throw new AidoError(
    "CONTAINER_CREATION_FAILED",
    `The network ${SHARED_NETWORK} of this engine lets containers reach each other`,
    {
      hint: `Remove it with \`docker network rm ${SHARED_NETWORK}\`: aido makes it anew, without that.`,
      details: { network: SHARED_NETWORK },
    },
  );
}

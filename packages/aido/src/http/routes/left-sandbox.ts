import type { Aido } from "@aido/sdk";
import type { CreatedSandbox } from "@aido/sdk/protocol";
import { idOfKey } from "../idempotent.ts";

/** By which a request that is repeated finds what its first attempt has made. */
const KEY_LABEL = "dev.aido.request";

export function keyLabels(owner: string, key: string | undefined): Record<string, string> {
  return key === undefined ? {} : { [KEY_LABEL]: idOfKey(owner, key) };
}

/**
 * What a server made that was killed before it could answer. Nobody has heard the sandbox's token, so it gets another one.
 * A sandbox that was only begun is none; looking at it takes it away.
 */
export async function leftSandbox(
  { sandboxes }: Pick<Aido, "sandboxes">,
  asked: { labels: Readonly<Record<string, string>>; since: Date; token: string | undefined },
): Promise<CreatedSandbox | undefined> {
  const [found] = await sandboxes.list({ labels: asked.labels, states: ["pending", "running"], limit: 1 });
  const left = found === undefined ? undefined : await sandboxes.get(found.id).catch(() => undefined);
  if (left?.state !== "running" || left.createdAt < asked.since) return undefined;
  const isSidecar = left.sidecarUrl !== undefined;
  return { ...left, token: isSidecar ? (await sandboxes.issueToken(left.id, asked.token)).token : undefined };
}

import type { Aido, SandboxFilter } from "@aido/sdk";
import type { SandboxInfo } from "@aido/sdk/protocol";

const PAGE = 200;

/** Every sandbox that fits, newest first, however many there are. */
export async function allSandboxes(
  aido: Aido,
  filter: Omit<SandboxFilter, "limit" | "before">,
): Promise<readonly SandboxInfo[]> {
  const found: SandboxInfo[] = [];
  for (;;) {
    const page = await aido.sandboxes.list({ ...filter, limit: PAGE, before: found.at(-1)?.id });
    found.push(...page);
    if (page.length < PAGE) return found;
  }
}

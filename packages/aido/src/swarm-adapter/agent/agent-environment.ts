/** Pushing and proposing is the adapter's part; what steers the adapter is not the agent's business. */
const NOT_THE_AGENTS =
  /^(GITHUB_TOKEN|GH_TOKEN|GITHUB_API_URL|AIMI_(AGENT|AGENT_ARGV|MODEL|MAX_\w+|WORKSPACE|GIT_TOKEN_HOSTS))$/;

/** The worker's own without its token, and what the request gives: by its environment, never in its orders. */
export function agentEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  given: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const kept = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !NOT_THE_AGENTS.test(entry[0]),
  );
  return { ...Object.fromEntries(kept), IS_SANDBOX: "1", ...given };
}

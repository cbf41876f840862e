type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Whom GITHUB_TOKEN is for: GitHub, the server whose API is named, and those that are named one by one. A request says
 * where its origin is, and an address alone is no reason to hand a token to whoever listens there.
 */
export function tokenHosts(env: Environment): ReadonlySet<string> {
  const named = (env["AIMI_GIT_TOKEN_HOSTS"] ?? "").split(",").map((host) => host.trim().toLowerCase());
  const api = apiHost(env["GITHUB_API_URL"]);
  // `api.github.com` and those like it are the APIs of the name behind the first dot.
  const hosts = ["github.com", api, api.replace(/^api\./, ""), ...named];
  return new Set(hosts.filter((host) => host !== ""));
}

function apiHost(address: string | undefined): string {
  try {
    return new URL(address ?? "").hostname;
  } catch {
    return "";
  }
}

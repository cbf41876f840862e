/** Where the branch comes from and goes to. */
export interface Remote {
  /** Without any secret in it: this is what may be written down. */
  readonly url: string;
  readonly host: string;
  /** The path without `.git`; `team/shop` at GitHub. */
  readonly path: string;
  /** What git is told for this host alone, by variables of its process. */
  readonly env: Readonly<Record<string, string>>;
  /** Forms of the secrets in it, to be kept out of everything that is told. */
  readonly secrets: readonly string[];
  /** There is a token, and it is not for this host. */
  readonly isWithheld: boolean;
}

export interface Access {
  readonly token: string | undefined;
  /** Those that may have it. */
  readonly hosts: ReadonlySet<string>;
}

const SCP_LIKE = /^([^@/]+)@([^:/]+):(.+)$/;

/**
 * The request's address, taken apart. A name and password in it are used like a token and not kept. An address of
 * GitHub by ssh becomes one by https when there is a token: a worker has a token rather than a key.
 */
export function toRemote(repoUrl: string, { token, hosts }: Access): Remote {
  const scp = SCP_LIKE.exec(repoUrl);
  const url = new URL(scp === null ? repoUrl : `ssh://${scp[1]}@${scp[2]}/${scp[3]}`);
  const path = url.pathname.replace(/^\/+|\/+$/g, "").replace(/\.git$/, "");
  const host = url.hostname.toLowerCase();
  if (url.protocol === "ssh:") {
    if (host !== "github.com" || token === undefined) {
      const clean = scp === null ? withoutPassword(url) : repoUrl;
      return { url: clean, host, path, env: {}, secrets: [], isWithheld: false };
    }
    return {
      url: `https://github.com/${path}.git`,
      host,
      path,
      ...authorized("https://github.com", login(token)),
      isWithheld: false,
    };
  }
  const own = url.username === "" && url.password === "" ? undefined : userInfo(url);
  url.username = "";
  url.password = "";
  const isFor = hosts.has(host);
  const credentials = own ?? (token === undefined || !isFor ? undefined : login(token));
  const access = credentials === undefined ? { env: {}, secrets: [] } : authorized(url.origin, credentials);
  const isWithheld = own === undefined && token !== undefined && !isFor;
  return { url: url.href, host, path, ...access, isWithheld };
}

const login = (token: string) => `x-access-token:${token}`;

function userInfo(url: URL): string {
  return `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
}

function withoutPassword(url: URL): string {
  url.password = "";
  return url.href;
}

/** In no file and no argument: settings by variables, of the one process that needs them. */
function authorized(origin: string, credentials: string): Pick<Remote, "env" | "secrets"> {
  const encoded = Buffer.from(credentials).toString("base64");
  return {
    env: {
      GIT_CONFIG_COUNT: "1",
      GIT_CONFIG_KEY_0: `http.${origin}/.extraHeader`,
      GIT_CONFIG_VALUE_0: `Authorization: Basic ${encoded}`,
    },
    secrets: [
      credentials.slice(credentials.indexOf(":") + 1),
      credentials,
      encoded,
      encoded.replace(/=+$/, ""),
    ],
  };
}

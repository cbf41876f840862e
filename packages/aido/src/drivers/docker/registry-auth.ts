import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

export interface RegistryAuth {
  username: string;
  password: string;
  serveraddress: string;
}

const DOCKER_HUB = "https://index.docker.io/v1/";

/** What `docker login` stored for the image's registry; undefined when there is nothing, as for public images. */
export async function registryAuth(
  image: string,
  configFile = join(homedir(), ".docker", "config.json"),
): Promise<RegistryAuth | undefined> {
  let text: string;
  try {
    text = await readFile(configFile, "utf8");
  } catch {
    return undefined;
  }
  return findAuth(text, registryOf(image));
}

/** The first part of a name is a registry when it looks like a host. */
export function registryOf(image: string): string {
  const first = image.split("/")[0] ?? "";
  const isHost = image.includes("/") && (/[.:]/.test(first) || first === "localhost");
  return isHost && first !== "docker.io" ? first : DOCKER_HUB;
}

function findAuth(text: string, registry: string): RegistryAuth | undefined {
  const auths = parseAuths(text);
  const encoded = auths[registry]?.auth ?? auths[`https://${registry}`]?.auth;
  if (encoded === undefined) return undefined;
  const decoded = Buffer.from(encoded, "base64").toString("utf8");
  const colon = decoded.indexOf(":");
  if (colon <= 0) return undefined;
  return { username: decoded.slice(0, colon), password: decoded.slice(colon + 1), serveraddress: registry };
}

function parseAuths(text: string): Readonly<Record<string, { auth?: string }>> {
  try {
    const config: { auths?: Record<string, { auth?: string }> } = JSON.parse(text) ?? {};
    return config.auths ?? {};
  } catch {
    return {};
  }
}

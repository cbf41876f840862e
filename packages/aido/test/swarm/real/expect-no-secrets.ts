import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { expect } from "vitest";
import { KEYS } from "../images-bed.ts";
import type { RealSwarm } from "./real-swarm.ts";

const encoded = (text: string) => Buffer.from(text).toString("base64").replace(/=+$/, "");
const FORMS = Object.values(KEYS).flatMap((key) => [key, encoded(key), encoded(`x-access-token:${key}`)]);

/** In no file on the host, nothing that the engine knows, no file and no log of a container, no image. */
export async function expectNoSecrets(swarm: RealSwarm, said: string): Promise<void> {
  expect(FORMS.filter((form) => said.includes(form))).toEqual([]);
  expect(await filesWith(swarm.git.directory)).toBe("");
  for (const name of await swarm.containers()) {
    const known = await swarm.docker("inspect", name);
    const image = await swarm.docker("inspect", "--format", "{{.Image}}", name);
    const history = await swarm.docker("history", "--no-trunc", image);
    const logs = await swarm.docker("logs", name).catch(() => "");
    for (const text of [known, history, logs, await swarm.docker("inspect", image)])
      expect(FORMS.filter((form) => text.includes(form))).toEqual([]);
    // Names may hold whatever they like, line ends too.
    const lines = (await swarm.docker("diff", name)).split("\n").filter((line) => /^[ACD] \//.test(line));
    const changed = lines.map((line) => line.split("/")[1] ?? "");
    expect(changed).toContain("workspace");
    for (const top of new Set(changed))
      expect(await hasSecret([`cp`, `${name}:/${top}`, "-"], swarm.env)).toBe(false);
  }
}

/** In the arguments of no process of this machine, those in containers included: anybody here sees them. */
export function expectNoSecretArguments(): void {
  const lines = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => commandLine(pid));
  expect(lines.some((line) => line.includes("acp-adapter"))).toBe(true);
  expect(lines.filter((line) => FORMS.some((form) => line.includes(form)))).toEqual([]);
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    // It has ended meanwhile.
    return "";
  }
}

async function filesWith(directory: string): Promise<string> {
  const patterns = FORMS.flatMap((form) => ["-e", form]);
  const child = spawn("grep", ["-rlF", ...patterns, "--", directory], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let found = "";
  for await (const part of child.stdout) found += part;
  return found;
}

async function hasSecret(argv: readonly string[], env: Record<string, string>): Promise<boolean> {
  const child = spawn("docker", argv, { env, stdio: ["ignore", "pipe", "inherit"] });
  let rest = "";
  let bytes = 0;
  let found = false;
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    const text = rest + chunk.toString("latin1");
    found ||= FORMS.some((form) => text.includes(form));
    rest = text.slice(-256);
    bytes += chunk.length;
  }
  expect(bytes).toBeGreaterThan(0);
  return found;
}

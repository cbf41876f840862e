import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { SshAddress } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { note, printResult } from "../output/print.ts";
import { printable } from "../output/printable.ts";
import { table } from "../output/table.ts";

const DEFAULT_KEYS = ["id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub"];

export interface KeyOptions {
  user?: string;
}

export interface ConnectOptions extends KeyOptions {
  print?: boolean;
  identity?: string;
}

/** The key itself, or a file that holds it; without either the first that ssh itself would use. */
export async function addKey(
  context: CliContext,
  sandbox: string,
  key: string | undefined,
  options: KeyOptions,
): Promise<number> {
  const publicKey = await readKey(context, key);
  const aido = await context.open();
  const added = await aido.ssh.addKey(sandbox, { publicKey, username: options.user });
  await printResult(context, added, () => `${added.fingerprint}\n`);
  await note(context, `It may log in to ${added.sandboxId}: \`aido ssh ${added.sandboxId}\``);
  return 0;
}

export async function removeKey(
  context: CliContext,
  sandbox: string,
  key: string,
  options: KeyOptions,
): Promise<number> {
  const named = key.startsWith("SHA256:") ? key : await readKey(context, key);
  const aido = await context.open();
  if (!(await aido.ssh.removeKey(sandbox, { key: named, username: options.user }))) {
    throw new AidoError("RESOURCE_NOT_FOUND", `Sandbox ${sandbox} has no such SSH key`, {
      hint: `\`aido ssh keys ${sandbox}\` shows those it has.`,
    });
  }
  await printResult(context, { removed: true }, () => "Revoked; connections made with it have ended\n");
  return 0;
}

export async function listKeys(context: CliContext, sandbox: string): Promise<number> {
  const aido = await context.open();
  const keys = await aido.ssh.keys(sandbox);
  await printResult(context, keys, () => {
    if (keys.length === 0) return `No key may log in. \`aido ssh add-key ${sandbox}\` adds one.\n`;
    return table(
      keys,
      [
        { title: "FINGERPRINT", value: (key) => key.fingerprint },
        { title: "TYPE", value: (key) => key.type },
        { title: "USER", value: (key) => key.username ?? "" },
        { title: "COMMENT", value: (key) => printable(key.comment) },
        { title: "ADDED", value: (key) => key.createdAt.toISOString() },
      ],
      context.stdout.columns,
    );
  });
  return 0;
}

/** Runs ssh with what it needs to know the server, or prints how to. */
export async function connect(
  context: CliContext,
  sandbox: string,
  command: readonly string[],
  options: ConnectOptions,
): Promise<number> {
  const aido = await context.open();
  const address = await aido.ssh.address(sandbox, options.user);
  if (options.print === true || context.globals.json) {
    const line = ["ssh", ...target(address, options)].join(" ");
    await printResult(context, { ...address, command: line }, () => `${line}\n`);
    return 0;
  }
  const directory = await mkdtemp(join(tmpdir(), "aido-known-"));
  try {
    const known = join(directory, "known_hosts");
    await writeFile(known, `${knownName(address)} ${address.hostKey}\n`);
    const trust = ["-o", `UserKnownHostsFile=${known}`, "-o", "StrictHostKeyChecking=yes"];
    return await run(["ssh", ...trust, ...target(address, options), ...command]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function target({ host, port, login }: SshAddress, { identity }: ConnectOptions): string[] {
  return [...(identity === undefined ? [] : ["-i", identity]), "-p", String(port), `${login}@${host}`];
}

/** As ssh writes it into known_hosts. */
function knownName({ host, port }: SshAddress): string {
  return port === 22 ? host : `[${host}]:${port}`;
}

function run([program = "", ...argv]: readonly string[]): Promise<number> {
  return new Promise((done, fail) => {
    const child = spawn(program, argv, { stdio: "inherit" });
    child.once("error", (cause) =>
      fail(
        new AidoError("UNSUPPORTED", "There is no ssh on this machine", {
          hint: "Install an OpenSSH client, or use `aido shell`.",
          cause,
        }),
      ),
    );
    child.once("exit", (code) => done(code ?? 255));
  });
}

async function readKey(context: CliContext, key: string | undefined): Promise<string> {
  if (key?.includes(" ")) return key;
  const home = join(context.env["HOME"] ?? homedir(), ".ssh");
  const files =
    key === undefined ? DEFAULT_KEYS.map((name) => join(home, name)) : [resolve(context.cwd, key)];
  for (const file of files) {
    const text = await readFile(file, "utf8").catch(() => undefined);
    // Never sent anywhere, not even to be refused.
    if (text?.includes("PRIVATE KEY")) {
      throw new AidoError("VALIDATION_ERROR", `${file} is a private key`, {
        hint: `Give the public one: ${file}.pub`,
      });
    }
    if (text !== undefined) return text;
  }
  throw new AidoError("INPUT_NOT_FOUND", `There is no public key in ${files.join(", ")}`, {
    hint: "`ssh-keygen -t ed25519` makes a key; name another file after the sandbox.",
  });
}

import { createHash, randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const ETC_DIRECTORIES = ["alternatives", "ssl/certs"] as const;

interface EtcSettings {
  home: string;
  uid: number;
  gid: number;
}

/** The sandbox's own /etc: nothing in it tells about the host. */
export function etcFiles({ home, uid, gid }: EtcSettings): Readonly<Record<string, string>> {
  const users = [`sandbox:x:${uid}:${gid}:sandbox:${home}:/bin/bash`];
  const groups = [`sandbox:x:${gid}:`];
  if (uid !== 0) users.unshift("root:x:0:0:root:/root:/usr/sbin/nologin");
  if (gid !== 0) groups.unshift("root:x:0:");
  if (uid !== 65534) users.push("nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin");
  if (gid !== 65534) groups.push("nogroup:x:65534:");
  const lines = (text: readonly string[]) => `${text.join("\n")}\n`;
  return {
    passwd: lines(users),
    group: lines(groups),
    "nsswitch.conf": lines(["passwd: files", "group: files", "hosts: files dns"]),
    // Mount points must exist beforehand, since the directory is read-only inside.
    hostname: "",
    hosts: "",
    "ld.so.cache": "",
    "resolv.conf": "",
  };
}

/** What differs from sandbox to sandbox is mounted over the rest, which they share. */
export function nameFiles(hostname: string): Readonly<Record<string, string>> {
  return {
    hostname: `${hostname}\n`,
    hosts: `127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.1.1 ${hostname}\n`,
  };
}

/**
 * The /etc of every sandbox with the same user and home, made once: a dozen new files would take longer than all else
 * on the way to the first command. Its name tells its content, and it appears complete or not at all.
 */
export function sharedEtc(root: string, settings: EtcSettings): string {
  const files = etcFiles(settings);
  const hash = createHash("sha256").update(JSON.stringify(files)).digest("hex").slice(0, 16);
  const directory = join(root, `.etc-${hash}`);
  if (existsSync(directory)) return directory;
  const draft = `${directory}.${randomBytes(6).toString("hex")}`;
  writeEtc(draft, files);
  try {
    renameSync(draft, directory);
  } catch (thrown) {
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(directory)) throw thrown;
  }
  return directory;
}

/** Readable by everyone whatever the umask, as the sandbox's user is not ours. */
export function writeEtc(directory: string, files: Readonly<Record<string, string>>): void {
  const directories = new Set([directory, ...ETC_DIRECTORIES.flatMap((name) => pathsTo(directory, name))]);
  for (const path of directories) {
    mkdirSync(path, { recursive: true });
    chmodSync(path, 0o755);
  }
  for (const [name, text] of Object.entries(files)) writeReadable(join(directory, name), text);
}

export function writeReadable(path: string, text: string): void {
  writeFileSync(path, text);
  chmodSync(path, 0o644);
}

function pathsTo(directory: string, name: string): string[] {
  const parts = name.split("/");
  return parts.map((_, index) => join(directory, ...parts.slice(0, index + 1)));
}

/** Any name as one that the kernel and programs take for a machine's. */
export function toHostname(name: string): string {
  return (
    name
      .replace(/[^A-Za-z0-9-]/g, "-")
      .replace(/^-+/, "")
      .slice(0, 63) || "sandbox"
  );
}

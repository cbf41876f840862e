import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const ETC_DIRECTORIES = ["alternatives", "ssl/certs"] as const;

interface EtcSettings {
  hostname: string;
  home: string;
  uid: number;
  gid: number;
}

/** The sandbox's own /etc: nothing in it tells about the host. */
export function etcFiles({ hostname, home, uid, gid }: EtcSettings): Readonly<Record<string, string>> {
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
    hostname: lines([hostname]),
    hosts: lines(["127.0.0.1 localhost", "::1 localhost ip6-localhost", `127.0.1.1 ${hostname}`]),
    "nsswitch.conf": lines(["passwd: files", "group: files", "hosts: files dns"]),
    // Mount points must exist beforehand, since the directory is read-only inside.
    "ld.so.cache": "",
    "resolv.conf": "",
  };
}

/**
 * A handful of tiny files on the way to every first command: written at once, since each wait for another thread would
 * take longer. Readable by everyone whatever the umask, as the sandbox's user is not ours.
 */
export function writeEtc(directory: string, settings: EtcSettings): void {
  const directories = new Set([directory, ...ETC_DIRECTORIES.flatMap((name) => pathsTo(directory, name))]);
  for (const path of directories) {
    mkdirSync(path, { recursive: true });
    chmodSync(path, 0o755);
  }
  for (const [name, text] of Object.entries(etcFiles(settings))) {
    writeFileSync(join(directory, name), text);
    chmodSync(join(directory, name), 0o644);
  }
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

import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { AGENT_BINARY } from "./agent-process.ts";

const run = promisify(execFile);
const LIMIT_MS = 20_000;

/** `root` becomes a chroot that is no mount itself, in a namespace whose mounts are shared as on most machines. */
const IN_CHROOT = `
set -e
root=$1
mount --make-rshared /
mount --bind /usr "$root/usr"
mount --bind /dev "$root/dev"
mount -t proc proc "$root/proc"
for name in bin lib lib64; do ln -s "usr/$name" "$root/$name"; done
before=$(sort /proc/self/mountinfo)
chroot "$root" /aido-agent launch --log /log --stage /tmp --bind /kept -- \\
  /bin/sh -c 'cat /tmp/0/file; exec sleep 60' >"$root/pid"
until grep -q kept "$root/log"; do sleep 0.05; done
[ "$before" = "$(sort /proc/self/mountinfo)" ] && echo "no mount got out"
kill -9 "$(cat "$root/pid")"
cat "$root/log"
`;

test("a chroot whose root is no mount can have paths staged, and none of its mounts gets out", async () => {
  const root = await mkdtemp(join(tmpdir(), "aido-stage-test-"));
  try {
    for (const name of ["usr", "dev", "proc", "tmp", "kept"]) await mkdir(join(root, name));
    await writeFile(join(root, "kept/file"), "kept\n");
    await run("cp", [AGENT_BINARY, join(root, "aido-agent")]);
    const { stdout } = await run("unshare", ["-m", "sh", "-c", IN_CHROOT, "sh", root], { timeout: LIMIT_MS });
    expect(stdout).toMatch(/^no mount got out\nkept\n/);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});

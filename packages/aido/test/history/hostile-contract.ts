import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { AidoUnderTest } from "../contract/aido-contract.ts";
import { type HistoryBed, makeHistoryBed } from "./history-bed.ts";

const SECRET = "the-host-keeps-this-to-itself";

/** A directory of the host: what is run by mistake touches `ran/`, what is followed by mistake shows SECRET. */
function makeCanary() {
  const path = mkdtempSync(join(tmpdir(), "aido-canary-"));
  mkdirSync(join(path, "ran"), { mode: 0o777 });
  mkdirSync(join(path, "hosts"));
  writeFileSync(join(path, "hosts/secret"), SECRET);
  return {
    path,
    ran: () => readdirSync(join(path, "ran")),
    hosts: () => readdirSync(join(path, "hosts")),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** Every way in which a tree makes git run something. */
function trap(canary: string): string {
  const run = (name: string) => `touch ${canary}/ran/${name}`;
  const config = [
    "[core]",
    `  fsmonitor = ${run("fsmonitor")}`,
    "  hooksPath = hooks",
    `  sshCommand = ${run("ssh")}`,
    `  pager = ${run("pager")}`,
    "  bare = false",
    "  worktree = .",
    '[filter "evil"]',
    `  clean = ${run("clean")}`,
    `  smudge = ${run("smudge")}`,
    `  process = ${run("process")}`,
    "  required = true",
    '[diff "evil"]',
    `  command = ${run("diff")}`,
    `  textconv = ${run("textconv")}`,
    `[diff]\n  external = ${run("external")}`,
    `[alias]\n  log = !${run("alias")}`,
    `[include]\n  path = ${canary}/hosts/secret`,
  ].join("\n");
  const attributes = "* filter=evil diff=evil text eol=crlf ident working-tree-encoding=UTF-16\n*.txt -diff";
  const hooks = ["pre-commit", "post-commit", "post-checkout", "post-index-change", "reference-transaction"];
  return `
    plant() {
      mkdir -p "$1/hooks" "$1/objects/info" "$1/refs/heads" "$1/info"
      echo 'ref: refs/heads/main' > "$1/HEAD"
      cat > "$1/config" <<'CONFIG'
${config}
CONFIG
      cat > "$1/info/attributes" <<'ATTRIBUTES'
${attributes}
ATTRIBUTES
      echo ${canary}/hosts > "$1/objects/info/alternates"
      for h in ${hooks.join(" ")}; do printf '#!/bin/sh\\n${run("hook")}\\n' > "$1/hooks/$h"; chmod +x "$1/hooks/$h"; done
    }
    plant .git; plant nested/.git; plant bare.git; plant .; plant .GIT
    mkdir -p sub; echo 'gitdir: ../bare.git' > sub/.git
    cat > .gitattributes <<'ATTRIBUTES'
${attributes}
ATTRIBUTES
    cp .gitattributes nested/
    printf '[submodule "x"]\\n path = nested\\n url = -u./payload\\n update = !${run("update")}\\n' > .gitmodules
    printf '[submodule "../../x"]\\n path = ../x\\n url = ext::${run("url")}\\n' > nested/.gitmodules
    ln -s ${canary}/hosts/secret leak; ln -s ${canary}/hosts hosts; ln -s / everything
    ln -s ../../../../../../../../${canary}/hosts/secret up
    mkdir links; ln -s ${canary}/hosts/secret links/.gitignore; ln -s ${canary}/hosts/secret links/.gitattributes
    echo plain > a.txt`;
}

function everyObject(bed: HistoryBed): string {
  return bed.git("cat-file", "--batch-all-objects", "--batch", "--unordered");
}

/** Nothing a workspace holds makes the host run or read anything. */
export function historyHostileContract(under: AidoUnderTest): void {
  describe(`a hostile workspace on ${under.driver}`, () => {
    test("hooks, filters, monitors, drivers, aliases and links of a tree neither run nor lead anywhere", async () => {
      using canary = makeCanary();
      await using bed = await makeHistoryBed(under);
      const one = await bed.sh(trap(canary.path));
      const two = await bed.sh("echo changed > a.txt; echo x > nested/b; rm leak; echo now a file > leak");
      await bed.reopen();
      const three = await bed.sh("echo more >> a.txt");
      await bed.aido.history.list(bed.id);
      await bed.aido.history.tree(bed.id, one.id);
      const diff = await bed.aido.history.diff(bed.id, one.id, three.id);
      expect(diff["a.txt"]).toContain("-plain\n+changed\n+more\n");
      expect(diff["leak"]).toContain(`-${canary.path}/hosts/secret`);
      const link = await bed.aido.history.file(bed.id, one.id, "leak");
      expect(Buffer.from(link).toString()).toBe(`${canary.path}/hosts/secret`);
      await bed.aido.history.rollback(bed.id, one.id);
      expect((await bed.sh("cat a.txt; readlink leak")).out).toBe(`plain\n${canary.path}/hosts/secret\n`);
      await bed.aido.history.rollback(bed.id, two.id);
      expect((await bed.sh("od -c a.txt | head -1; cat leak")).out).toMatch(
        /c {3}h {3}a.*\\n\s*\nnow a file\n/,
      );
      expect(canary.ran()).toEqual([]);
      expect(canary.hosts()).toEqual(["secret"]);
      expect(everyObject(bed)).not.toContain(SECRET);
    });

    test("what the user's own git or environment would run is not run either", async () => {
      using canary = makeCanary();
      const old = { ...process.env };
      try {
        for (const name of [
          "GIT_EXTERNAL_DIFF",
          "GIT_PAGER",
          "GIT_EDITOR",
          "GIT_SSH_COMMAND",
          "GIT_ASKPASS",
        ]) {
          process.env[name] = `touch ${canary.path}/ran/${name}`;
        }
        process.env["GIT_DIR"] = join(canary.path, "hosts");
        process.env["GIT_CONFIG_COUNT"] = "1";
        process.env["GIT_CONFIG_KEY_0"] = "diff.external";
        process.env["GIT_CONFIG_VALUE_0"] = `touch ${canary.path}/ran/config`;
        await using bed = await makeHistoryBed(under);
        const one = await bed.sh("echo 1 > a");
        expect(await bed.aido.history.diff(bed.id, "unknown", one.id)).toMatchObject({
          a: expect.stringContaining("+1\n"),
        });
        await bed.aido.history.rollback(bed.id, "unknown");
        expect(await bed.aido.history.list(bed.id)).toHaveLength(3);
      } finally {
        for (const name of Object.keys(process.env)) if (!(name in old)) delete process.env[name];
        Object.assign(process.env, old);
      }
      expect(canary.ran()).toEqual([]);
      expect(canary.hosts()).toEqual(["secret"]);
    });

    test("a rollback writes through no link that has come into its way", async () => {
      using canary = makeCanary();
      await using bed = await makeHistoryBed(under);
      const one = await bed.sh("mkdir -p d/e; echo 1 > d/f; echo 2 > d/e/g; echo 3 > file");
      await bed.sh(`rm -r d file; mkdir /tmp/target /tmp/target/e; echo keep > /tmp/target/kept
        ln -s /tmp/target d; ln -s ${canary.path}/hosts/secret file`);
      await bed.aido.history.rollback(bed.id, one.id);
      expect((await bed.sh("cat d/f d/e/g file; test ! -L d; find /tmp/target | sort")).out).toBe(
        "1\n2\n3\n/tmp/target\n/tmp/target/e\n/tmp/target/kept\n",
      );
      await bed.sh("rm -r d/e; ln -s ../../../../tmp/target d/e");
      await bed.aido.history.rollback(bed.id, one.id);
      expect((await bed.sh("cat d/e/g; find /tmp/target | sort")).out).toBe(
        "2\n/tmp/target\n/tmp/target/e\n/tmp/target/kept\n",
      );
      expect(canary.hosts()).toEqual(["secret"]);
    });

    test("files that turn into links and back while they are read never show what the links lead to", async () => {
      using canary = makeCanary();
      await using bed = await makeHistoryBed(under);
      await bed.sh(`echo ${SECRET}-inside > /tmp/inside`, { history: false });
      const flip = `while ! test -e stop; do for l in ${canary.path}/hosts/secret /tmp/inside; do
        ln -sfn $l x; rm -f x; echo mine > x; rm -f x; ln -sfn /tmp d; rm -f d; mkdir d; echo mine > d/inside; rm -r d; done; done`;
      const busy = await bed.aido.execs.start(bed.id, { argv: ["sh", "-c", flip] });
      for (let i = 0; i < 30; i++) await bed.sh(`echo ${i} > mine`);
      await bed.sh("touch stop");
      await bed.aido.execs.wait(bed.id, busy.id);
      expect(everyObject(bed)).not.toContain(SECRET);
    });

    test.each(["KILL", "STOP"])(
      "code that ends or halts the watch (%s) hides nothing it does",
      async (signal) => {
        await using bed = await makeHistoryBed(under);
        for (let i = 0; i < 3; i++) await bed.sh(`echo ${i} > a`);
        // Tools are forked from the first process and bear its name; so does the parent of this shell.
        const halt = `for p in /proc/[0-9]*; do n=\${p#/proc/}; test $n = 1 || test $n = $PPID ||
        ! grep -q aido-agent $p/comm || { kill -${signal} $n; echo $n; }; done; echo hidden > b`;
        const { id, out } = await bed.sh(halt);
        expect(out).toMatch(/^\d+\n$/);
        expect((await bed.aido.history.list(bed.id))[0]).toMatchObject({ execId: id, files: ["b"] });
        for (let i = 0; i < 4; i++) await bed.sh(`echo ${i} > c`);
        expect((await bed.aido.history.list(bed.id)).slice(0, 4).map(({ files }) => files)).toEqual(
          Array.from({ length: 4 }, () => ["c"]),
        );
        expect(bed.git("fsck", "--strict", "--no-dangling")).toBe("");
      },
    );

    test("trees too deep to be named are left out and the rest is kept", async () => {
      await using bed = await makeHistoryBed(under);
      const name = "d".repeat(200);
      const deep = await bed.sh(
        `for i in $(seq 40); do mkdir ${name} && cd ${name} && echo $i > f; done; cd /work; echo 1 > a`,
      );
      const files = (await bed.aido.history.list(bed.id))[0]?.files ?? [];
      expect(files).toContain("a");
      expect(files.length).toBeGreaterThan(10);
      expect(files.every((path) => path.length <= 4_095)).toBe(true);
      await bed.sh(`echo changed > ${name}/f; echo 2 > a`);
      await bed.aido.history.rollback(bed.id, deep.id);
      expect((await bed.sh(`cat a ${name}/f`)).out).toBe("1\n1\n");
    });

    test("the repository is nowhere in the sandbox", async () => {
      await using bed = await makeHistoryBed(under);
      const { out } = await bed.sh("find / -name 'history.git' -o -name workspace.state 2>/dev/null; true");
      expect(out).toBe("");
    });
  });
}

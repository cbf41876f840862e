import { describe, expect, test } from "vitest";
import type { AidoUnderTest } from "../contract/aido-contract.ts";
import { makeHistoryBed } from "./history-bed.ts";

/** What every user of a history relies on, with a real driver. */
export function historyContract(under: AidoUnderTest): void {
  describe(`history on ${under.driver}`, () => {
    test("S3-23 S3-86 a new workspace begins with the entry `unknown`, `Initial commit`, README.md", async () => {
      await using bed = await makeHistoryBed(under);
      const entries = await bed.aido.history.list(bed.id);
      expect(entries).toMatchObject([{ execId: "unknown", message: "Initial commit", files: ["README.md"] }]);
      expect(entries[0]?.commitId).toMatch(/^[0-9a-f]{40}$/);
      expect(bed.git("fsck", "--strict", "--no-dangling")).toBe("");
      expect(bed.git("log", "-1", "--format=%an <%ae>", "main").trim()).toBe(
        "Sandbox User <sandbox@example.com>",
      );
    });

    test("S3-87 S3-88 S3-89 S3-90 each exec that changes something is one entry, tied to it, newest first", async () => {
      await using bed = await makeHistoryBed(under);
      const one = await bed.sh("echo 1 > a; mkdir d; echo 2 > d/b");
      const idle = await bed.sh("cat a");
      const two = await bed.sh("rm d/b; echo 3 >> a");
      const entries = await bed.aido.history.list(bed.id);
      expect(entries.map(({ execId, files }) => [execId, files])).toEqual([
        [two.id, ["a", "d/b"]],
        [one.id, ["a", "d/b"]],
        ["unknown", ["README.md"]],
      ]);
      expect(entries[0]?.message).toBe("Update files for sandbox execution");
      expect(bed.git("log", "-1", "--format=%B", entries[0]?.commitId ?? "")).toContain(
        `Execution ID: ${two.id}\nTimestamp: ${entries[0]?.at.toISOString()}\n`,
      );
      expect(await bed.aido.history.tree(bed.id, idle.id)).toEqual(
        await bed.aido.history.tree(bed.id, one.id),
      );
      expect(await bed.aido.history.list(bed.id, { limit: 1 })).toHaveLength(1);
      const told = [];
      for await (const { event, detail } of bed.aido.evidence.read(bed.id)) {
        if (event === "history.commit") told.push(detail);
      }
      expect(told).toMatchObject([
        { execId: one.id, files: ["a", "d/b"], filesTotal: 2 },
        { execId: two.id, commitId: entries[0]?.commitId, files: ["a", "d/b"], filesTotal: 2 },
      ]);
      expect(bed.git("fsck", "--strict", "--no-dangling")).toBe("");
    });

    test("S3-87 files written before an exec belong to its entry, though it changes nothing itself", async () => {
      await using bed = await makeHistoryBed(under);
      await bed.sh("echo before > x");
      await bed.aido.files.write(bed.id, "/work/given.txt", Buffer.from("given\n"));
      const { id } = await bed.sh("true");
      expect(await bed.aido.history.list(bed.id, { limit: 1 })).toMatchObject([
        { execId: id, files: ["given.txt"] },
      ]);
    });

    test("S3-24 a diff holds git's text for each path", async () => {
      await using bed = await makeHistoryBed(under);
      const one = await bed.sh("printf 'a\\nb\\n' > text; echo gone > old; ln -s text link");
      const two = await bed.sh("printf 'a\\nc\\n' > text; rm old; rm link; echo file > link; chmod +x text");
      const diff = await bed.aido.history.diff(bed.id, one.id, two.id);
      expect(Object.keys(diff).sort()).toEqual(["link", "old", "text"]);
      expect(diff["text"]).toMatch(/^diff --git a\/text b\/text\nold mode 100644\nnew mode 100755\nindex /);
      expect(diff["text"]).toContain("@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
      expect(diff["old"]).toContain("deleted file mode 100644");
      expect(diff["link"]).toMatch(/deleted file mode 120000.*new file mode 100644.*\+file\n$/s);
      expect(await bed.aido.history.diff(bed.id, two.id, two.id)).toEqual({});
      const unknown = bed.aido.history.diff(bed.id, one.id, "exec_nobody");
      await expect(unknown).rejects.toMatchObject({ code: "EXECUTION_NOT_FOUND" });
      await expect(bed.aido.history.diff(bed.id, "../../x", two.id)).rejects.toMatchObject({
        code: "EXECUTION_NOT_FOUND",
      });
    });

    test("S3-24 content that looks like a diff behind another end of line than \\n is content", async () => {
      await using bed = await makeHistoryBed(under);
      const text = ["\r", "\u2028", "\u2029", "\f"].map((end) => `x${end}diff --git y\n`).join("");
      await bed.aido.files.write(bed.id, "/work/lines", Buffer.from(text));
      const { id } = await bed.sh("echo 1 > other");
      const diff = await bed.aido.history.diff(bed.id, "unknown", id);
      expect(Object.keys(diff).sort()).toEqual(["lines", "other"]);
      expect(diff["lines"]?.endsWith(`@@ -0,0 +1,4 @@\n${text.replaceAll("x", "+x")}`)).toBe(true);
      expect(diff["other"]?.endsWith("+1\n")).toBe(true);
    });

    test("a history that is full refuses no exec, says so in the evidence, and can be read", async () => {
      const settings = { ...under.settings, "history.maxBytes": "2m" };
      await using bed = await makeHistoryBed({ ...under, settings });
      const one = await bed.sh("head -c 1500000 /dev/urandom > a");
      const two = await bed.sh("head -c 1500000 /dev/urandom > b");
      const three = await bed.sh("echo 1 > c; cat c");
      expect(three.out).toBe("1\n");
      expect((await bed.aido.history.list(bed.id)).map(({ execId }) => execId)).toEqual([
        ...[two.id, one.id, "unknown"],
      ]);
      const failures = async () => {
        const failed: unknown[] = [];
        for await (const { event, detail } of bed.aido.evidence.read(bed.id)) {
          if (event === "history.failed") failed.push(detail);
        }
        return failed;
      };
      const message = expect.stringMatching(/has its 2097152 bytes/);
      await expect.poll(failures, { timeout: 30_000 }).toMatchObject([{ execId: three.id, message }]);
      await expect(bed.aido.history.rollback(bed.id, one.id)).rejects.toMatchObject({ code: "HISTORY_FULL" });
      expect((await bed.sh("ls")).out).toBe("README.md\na\nb\nc\n");
    });

    test("S3-25 after a rollback an exec sees the old tree, and what was there since is an entry", async () => {
      await using bed = await makeHistoryBed(under);
      const one = await bed.sh("echo 1 > a; mkdir -p d/e; echo x > d/e/f; ln -s a l; echo s > s; chmod +x s");
      await bed.sh(
        "echo 2 > a; rm -r d; rm l s; echo new > n; mkdir -p l/deep; echo in > l/deep/file; echo d > d",
      );
      await bed.sh("echo unseen > u", { history: false });
      const entry = await bed.aido.history.rollback(bed.id, one.id);
      expect(entry.message).toBe(`Roll back to ${one.id}`);
      const look = "cat a d/e/f; readlink l; test -x s; ls -A; find . -name .git | wc -l";
      expect((await bed.sh(look)).out).toBe("1\nx\na\nREADME.md\na\nd\nl\ns\n0\n");
      const [rolled, kept] = await bed.aido.history.list(bed.id);
      expect(rolled?.commitId).toBe(entry.commitId);
      expect(kept).toMatchObject({ message: "Keep changes before a rollback", files: ["u"] });
      expect(await bed.aido.history.diff(bed.id, one.id, rolled?.execId ?? "")).toEqual({});
      await bed.aido.history.rollback(bed.id, kept?.execId ?? "");
      expect((await bed.sh("cat a n u d l/deep/file")).out).toBe("2\nnew\nunseen\nd\nin\n");
      await expect(bed.aido.history.rollback(bed.id, "exec_nobody")).rejects.toMatchObject({
        code: "EXECUTION_NOT_FOUND",
      });
    });

    test("a rollback makes room where pipes, links and directories without files have come", async () => {
      await using bed = await makeHistoryBed(under);
      const one = await bed.sh("mkdir d; echo 1 > d/f; echo 2 > file; echo 3 > plain; date +%s > now");
      await bed.sh(
        "rm -r d file plain; mkfifo d; mkdir -p file/empty/.git; mkfifo file/p; ln -s /etc plain; mkfifo now2",
      );
      await bed.aido.history.rollback(bed.id, one.id);
      const { out } = await bed.sh(
        "cat d/f file plain; test $(( $(stat -c %Y d/f) - $(cat now) )) -ge 0 && echo ok",
      );
      expect(out).toBe("1\n2\n3\nok\n");
    });

    test("S3-91 the tree and any file of an entry can be read, whatever the image holds", async () => {
      await using bed = await makeHistoryBed(under);
      const one = await bed.sh(
        "printf '\\000\\377\\001bin' > bin; echo x > run; chmod 755 run; ln -s nowhere/at/all l",
      );
      await bed.sh("rm bin run l");
      expect(await bed.aido.history.tree(bed.id, one.id)).toEqual([
        { path: "README.md", mode: "100644", size: expect.any(Number) },
        { path: "bin", mode: "100644", size: 6 },
        { path: "l", mode: "120000", size: 14 },
        { path: "run", mode: "100755", size: 2 },
      ]);
      const read = async (path: string) => Buffer.from(await bed.aido.history.file(bed.id, one.id, path));
      expect(await read("bin")).toEqual(Buffer.from([0, 255, 1, 98, 105, 110]));
      expect((await read("l")).toString()).toBe("nowhere/at/all");
      await expect(read("none")).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
      await bed.aido.history.rollback(bed.id, one.id);
      expect((await bed.sh("od -An -tx1 bin; readlink l; ./run || test -x run")).out).toBe(
        " 00 ff 01 62 69 6e\nnowhere/at/all\n",
      );
    });

    test("keeps names with newlines, quotes, control characters and bytes that are no UTF-8", async () => {
      await using bed = await makeHistoryBed(under);
      const script = `
        n=$(printf 'x\\ny'); echo 1 > "$n"
        b=$(printf '\\nbegins'); echo 2 > "$b"
        q=$(printf 'q"\\047\\\\ \\001\\t'); mkdir "$q"; echo 3 > "$q/é"
        l=$(printf 'latin\\351'); echo 4 > "$l"
        echo 5 > ':1 weird'; echo 6 > '-rf'; echo 7 > __proto__`;
      const one = await bed.sh(script);
      const names = ["\nbegins", '"latin\\351"', "-rf", ":1 weird", "__proto__", "q\"'\\ \x01\t/é", "x\ny"];
      const [entry] = await bed.aido.history.list(bed.id);
      expect([...(entry?.files ?? [])].sort()).toEqual([...names].sort());
      const diff = await bed.aido.history.diff(bed.id, "unknown", one.id);
      expect(Object.keys(diff).sort()).toEqual([...names].sort());
      for (const [name, text] of Object.entries(diff)) {
        const content = Buffer.from(await bed.aido.history.file(bed.id, one.id, name)).toString();
        expect(text.endsWith(`@@ -0,0 +1 @@\n+${content}`)).toBe(true);
      }
      const all = (
        await bed.sh("find . -type f -print0 | sort -z | od -An -tx1; find . -type f -exec cat {} + | sort")
      ).out;
      await bed.sh("rm -rf ./* ./.[!.]*");
      await bed.aido.history.rollback(bed.id, one.id);
      expect(
        (await bed.sh("find . -type f -print0 | sort -z | od -An -tx1; find . -type f -exec cat {} + | sort"))
          .out,
      ).toBe(all);
      expect(bed.git("fsck", "--strict", "--no-dangling")).toBe("");
    });

    test("sees renames by case only, moved directories, changed modes and kinds", async () => {
      await using bed = await makeHistoryBed(under);
      await bed.sh("mkdir -p dir/sub; echo 1 > dir/sub/f; echo 2 > name; mkdir empty; echo x > kind");
      const files = async () => (await bed.aido.history.list(bed.id, { limit: 1 }))[0]?.files;
      await bed.sh("mv name NAME; mv dir DIR");
      expect(await files()).toEqual(["DIR/sub/f", "NAME", "dir/sub/f", "name"]);
      await bed.sh("chmod +x NAME");
      expect(await files()).toEqual(["NAME"]);
      const before = await bed.aido.history.list(bed.id);
      await bed.sh("mkdir -p other/empty/dirs; chmod 700 DIR; touch NAME; mkfifo pipe");
      expect(await bed.aido.history.list(bed.id)).toEqual(before);
      await bed.sh("rm kind; mkdir kind; echo in > kind/in");
      expect(await files()).toEqual(["kind", "kind/in"]);
      await bed.sh("rm -r kind; ln -s NAME kind");
      expect(await files()).toEqual(["kind", "kind/in"]);
      await bed.sh("mkdir /tmp/away; echo deep > /tmp/away/old; mv /tmp/away here");
      expect(await files()).toEqual(["here/old"]);
      await bed.sh("rm -r here; mv DIR here");
      expect(await files()).toEqual(["DIR/sub/f", "here/old", "here/sub/f"]);
    });

    test("repositories in the workspace come back exactly, their insides too", async () => {
      await using bed = await makeHistoryBed(under);
      const repository =
        "mkdir -p $d/.git/refs; echo 'ref: refs/heads/x' > $d/.git/HEAD; echo $d > $d/f; echo % > $d/.git%";
      const one = await bed.sh(`for d in . inner; do ${repository}; done`);
      const files = [".git%", ".git/HEAD", "f", "inner/.git%", "inner/.git/HEAD", "inner/f"];
      expect([...((await bed.aido.history.list(bed.id))[0]?.files ?? [])].sort()).toEqual(files);
      const two = await bed.sh(
        "echo 'ref: refs/heads/y' > .git/HEAD; echo 1 > inner/.git/new; rm inner/.git/HEAD",
      );
      const diff = await bed.aido.history.diff(bed.id, one.id, two.id);
      expect(Object.keys(diff).sort()).toEqual([".git/HEAD", "inner/.git/HEAD", "inner/.git/new"]);
      expect(bed.git("fsck", "--strict", "--no-dangling")).toBe("");
      await bed.aido.history.rollback(bed.id, one.id);
      const back = await bed.sh("cat .git/HEAD inner/.git/HEAD .git% f; test -e inner/.git/new || echo gone");
      expect(back.out).toBe("ref: refs/heads/x\nref: refs/heads/x\n%\n.\ngone\n");
    });

    test("an exec with history switched off makes no entry; the next one's holds its changes", async () => {
      await using bed = await makeHistoryBed(under);
      const off = await bed.sh("echo off > off", { history: false });
      expect(await bed.aido.history.list(bed.id)).toHaveLength(1);
      await expect(bed.aido.history.tree(bed.id, off.id)).rejects.toMatchObject({
        code: "EXECUTION_NOT_FOUND",
      });
      const on = await bed.sh("echo on > on");
      expect((await bed.aido.history.list(bed.id))[0]).toMatchObject({ execId: on.id, files: ["off", "on"] });
    });

    test("a sandbox without history says so", async () => {
      await using bed = await makeHistoryBed(under, { history: false });
      await bed.sh("echo 1 > a");
      await expect(bed.aido.history.list(bed.id)).rejects.toMatchObject({ code: "UNSUPPORTED" });
      await expect(bed.aido.history.rollback(bed.id, "unknown")).rejects.toMatchObject({
        code: "UNSUPPORTED",
      });
    });

    test("an exec asked for twice with one id has one entry", async () => {
      await using bed = await makeHistoryBed(under);
      await bed.sh("date +%N >> once", { id: "exec_mine" });
      await bed.sh("echo later > later");
      await bed.sh("date +%N >> once", { id: "exec_mine" });
      const entries = await bed.aido.history.list(bed.id);
      expect(entries.map(({ files }) => files)).toEqual([["later"], ["once"], ["README.md"]]);
      expect(await bed.aido.history.tree(bed.id, "exec_mine")).toHaveLength(2);
    });

    test("many quick execs each have their own change and nothing else", async () => {
      await using bed = await makeHistoryBed(under);
      for (let i = 0; i < 40; i++) await bed.sh(`echo ${i} > same; echo ${i} > f${i}`);
      const entries = await bed.aido.history.list(bed.id, { limit: 100 });
      expect(entries).toHaveLength(41);
      for (const [index, { execId, files }] of entries.slice(0, 40).entries()) {
        const i = 39 - index;
        expect(files).toEqual([`f${i}`, "same"]);
        expect(Buffer.from(await bed.aido.history.file(bed.id, execId, "same")).toString()).toBe(`${i}\n`);
      }
    });
  });
}

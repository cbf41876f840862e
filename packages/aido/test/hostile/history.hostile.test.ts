import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DRIVERS, Range } from "./range.ts";

/** Everything that makes git run a program, should anybody run git in this tree. */
const GIT_TRAPS = (directory: string) => `
import os
run = "touch ${directory}/pwned"
def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    open(path, "w").write(text)
    os.chmod(path, mode)
for base in (".", "nested", "nested/deeper"):
    git = base + "/.git"
    write(git + "/HEAD", "ref: refs/heads/main\\n")
    os.makedirs(git + "/objects", exist_ok=True); os.makedirs(git + "/refs/heads", exist_ok=True)
    write(git + "/config", """[core]
  repositoryformatversion = 0
  fsmonitor = %s
  hooksPath = hooks
  sshCommand = %s
  pager = %s
  editor = %s
[filter "trap"]
  clean = %s
  smudge = %s
  process = %s
[diff "trap"]
  textconv = %s
  command = %s
""" % ((run,) * 9))
    for hook in ("pre-commit", "post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"):
        write(git + "/hooks/" + hook, "#!/bin/sh\\n" + run + "\\n", 0o755)
        write("hooks/" + hook, "#!/bin/sh\\n" + run + "\\n", 0o755)
    write(base + "/.gitattributes", "* filter=trap diff=trap\\n")
write(".gitmodules", '[submodule "x"]\\n path = nested\\n url = "ext::sh -c %s"\\n update = !%s\\n' % (run, run))
write("pointer/.git", "gitdir: ${directory}\\n")
os.symlink("${directory}", "outside")
os.makedirs(b"\\xff\\xfe"); open(b"\\xff\\xfe/x\\ny", "w").write("odd")
for name in ("--upload-pack=x", "-c", ".git ", "GIT~1", ".GIT"):
    write(name if "/" in name else "./" + name, "x")
print("set")
`;

for (const driver of DRIVERS) {
  describe(`attacks through the history on ${driver}`, () => {
    let range: Range;
    beforeAll(async () => {
      range = await Range.open(driver);
    });
    afterAll(async () => {
      await range[Symbol.asyncDispose]();
    });

    test("repositories, hooks, filters and links in the workspace run nothing and show nothing of the host", async () => {
      await using target = await range.sandbox({ history: true });
      const { history } = range.aido;
      const first = await target.attack("open('plain', 'w').write('1')");
      const { stdout, stderr, info } = await target.attack(GIT_TRAPS(range.canaries.directory));
      expect([stdout, stderr]).toEqual(["set\n", ""]);
      await target.attack("open('.gitattributes', 'a').write('more'); open('plain', 'w').write('2')");
      const entries = await history.list(target.id);
      expect(entries.length).toBeGreaterThanOrEqual(3);
      const diff = await history.diff(target.id, first.info.id, info.id);
      expect(JSON.stringify(diff)).not.toContain(range.canaries.secret);
      expect(Object.keys(diff)).toContain(".gitattributes");
      await history.rollback(target.id, first.info.id);
      expect(await target.read("plain")).toBe("1");
      const { stdout: left } = await target.attack("import os; print(*sorted(os.listdir('.')))");
      // Repositories are files like others; only their empty directories stay.
      expect(left).toBe(".git README.md nested plain\n");
      await target.answers();
    });
  });
}

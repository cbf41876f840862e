import { lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { Project } from "./project.ts";

test.each(["local", "docker"])("cp on %s takes files both ways, names and modes as typed", async (driver) => {
  await using project = await Project.make(driver, { "in.sh": "#!/bin/sh\necho copied\n" });
  const id = await project.create();
  await project.ok(["exec", id, "sh", "-c", "mkdir -p /tmp/dir"]);
  await project.ok(["cp", "in.sh", `${id}:/tmp/dir`]);
  await project.ok(["cp", "in.sh", `${id}:/tmp/other.sh`]);
  expect((await project.ok(["exec", id, "sh", "/tmp/dir/in.sh"])).stdout).toBe("copied\n");
  expect((await project.ok(["exec", id, "sh", "/tmp/other.sh"])).stdout).toBe("copied\n");
  await mkdir(project.path("here"));
  await project.ok(["cp", `${id}:/tmp/other.sh`, "here"]);
  await project.ok(["cp", `${id}:/tmp/other.sh`, "renamed"]);
  expect(await project.read("here", "other.sh")).toBe("#!/bin/sh\necho copied\n");
  expect(await project.read("renamed")).toBe("#!/bin/sh\necho copied\n");
});

test.each(["local", "docker"])("cp on %s takes directories both ways", async (driver) => {
  await using project = await Project.make(driver, { "tree/a/b.txt": "b", "tree/with space": "s" });
  await writeFile(project.path("tree", "large"), Buffer.alloc(3_000_001, 1));
  await symlink("a/b.txt", project.path("tree", "link"));
  const id = await project.create();
  await project.ok(["cp", "tree", `${id}:/tmp`]);
  expect((await project.ok(["exec", id, "cat", "/tmp/tree/link"])).stdout).toBe("b");
  await project.ok(["cp", `${id}:/tmp/tree`, "back"]);
  expect(await project.read("back", "a", "b.txt")).toBe("b");
  expect(await readlink(project.path("back", "link"))).toBe("a/b.txt");
  expect((await readFile(project.path("back", "large"))).length).toBe(3_000_001);
  expect((await readdir(project.path("back"))).sort()).toEqual(["a", "large", "link", "with space"]);
});

test("a hostile tree stays inside the target: pipes and links that lead out are left out", async () => {
  await using project = await Project.make();
  const id = await project.create();
  const script =
    "mkdir -p /tmp/t/d && cd /tmp/t && ln -s /etc/passwd abs && ln -s ../../../../etc rel && mkfifo pipe && echo x > d/x && ln -s . self && ln -s self/.. up";
  await project.ok(["exec", id, "sh", "-c", script]);
  const outcome = await project.ok(["cp", `${id}:/tmp/t`, "out"]);
  expect((await readdir(project.path("out"))).sort()).toEqual(["d", "self"]);
  for (const name of ["abs", "rel", "up"]) expect(outcome.stderr).toContain(name);
});

test("names that are no UTF-8 are left out and told, both ways", async () => {
  await using project = await Project.make("local", { "tree/fine": "f" });
  for (const byte of [0xfe, 0xff]) {
    await writeFile(Buffer.from([...Buffer.from(`${project.path("tree")}/a`), byte]), "odd");
  }
  const id = await project.create();
  const into = await project.ok(["cp", "tree", `${id}:/tmp/tree`]);
  expect(into.stderr.match(/was left out: its name is not UTF-8/g)).toHaveLength(2);
  await project.ok([
    "exec",
    id,
    "sh",
    "-c",
    `cd /tmp/tree && touch "$(printf 'a\\376')" "$(printf 'a\\377')"`,
  ]);
  const out = await project.ok(["cp", `${id}:/tmp/tree`, "back"]);
  expect(out.stderr.match(/was left out: its name is not UTF-8/g)).toHaveLength(2);
  expect(await readdir(project.path("back"))).toEqual(["fine"]);
});

test.each(["local", "docker"])("cp on %s brings every name of a file", async (driver) => {
  await using project = await Project.make(driver);
  const id = await project.create();
  await project.ok(["exec", id, "sh", "-c", "mkdir /tmp/t && cd /tmp/t && echo x > one && ln one two"]);
  const outcome = await project.ok(["cp", `${id}:/tmp/t`, "back"]);
  expect(outcome.stderr).not.toContain("left out");
  expect(await project.read("back", "two")).toBe("x\n");
});

test("a link that is named itself is copied as what it leads to", async () => {
  await using project = await Project.make("local", { "tree/file": "f" });
  await symlink("tree/file", project.path("link"));
  await symlink("tree", project.path("linked"));
  const id = await project.create();
  await project.ok(["cp", "link", `${id}:/tmp/`]);
  await project.ok(["cp", "linked", `${id}:/tmp/`]);
  expect((await project.ok(["exec", id, "cat", "/tmp/link", "/tmp/linked/file"])).stdout).toBe("ff");
});

test("cp does not write through a link that is in the way", async () => {
  await using project = await Project.make("local", { victim: "mine" });
  const id = await project.create();
  await project.ok(["exec", id, "sh", "-c", "echo theirs > /tmp/file"]);
  await symlink("victim", project.path("file"));
  await project.ok(["cp", `${id}:/tmp/file`, "./file"]);
  expect(await project.read("victim")).toBe("mine");
  expect((await lstat(project.path("file"))).isSymbolicLink()).toBe(false);
});

test.each([
  [["cp", "a", "b"], 2],
  [["cp", "x:/a", "y:/b"], 2],
  [["cp", "none", "web:/tmp"], 4],
  [["cp", "web:/no/such", "x"], 4],
  [["cp", "nowhere:/etc/hosts", "x"], 4],
  [["cp", "web:/etc/hostname", "no/such/dir/"], 4],
])("%j exits with %i and copies nothing", async (argv, code) => {
  await using project = await Project.make();
  await project.create("--name", "web");
  expect(await project.aido(argv)).toMatchObject({ code, stdout: "" });
  expect(await readdir(project.directory)).toEqual([".aido"]);
});

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ensureProgram } from "./ensure-packages.ts";

/** Notes how it was called; `install` makes the program as long as there is no file `broken`. */
const APT_GET = `#!/bin/sh
here=\${0%/*}
echo "$*" >>"$here/calls"
case " $* " in
  *" install "*)
    if [ -e "$here/broken" ]; then echo "E: Unable to locate package" >&2; exit 100; fi
    printf '#!/bin/sh\\n' >"$here/wanted"; /bin/chmod +x "$here/wanted" ;;
esac
`;

test("a program that is there is found, and nothing is installed", async () => {
  await using machine = await makeMachine();
  await machine.put("wanted", "#!/bin/sh\n");
  expect(await machine.ensure({ isRoot: true })).toBe(join(machine.directory, "wanted"));
  expect(await machine.calls()).toBe("");
});

test("root gets a missing program installed, with one line that says so", async () => {
  await using machine = await makeMachine();
  const steps: string[] = [];
  const found = await machine.ensure({ isRoot: true, onProgress: (step) => steps.push(step) });
  expect(found).toBe(join(machine.directory, "wanted"));
  expect(steps).toEqual(["Installing wanted-package"]);
  expect(await machine.calls()).toContain("install -y --no-install-recommends wanted-package");
});

test("others are told what to type, and nothing is installed", async () => {
  await using machine = await makeMachine();
  await expect(machine.ensure({ isRoot: false })).rejects.toMatchObject({
    code: "IMAGE_NOT_FOUND",
    hint: expect.stringContaining("apt-get install wanted-package"),
  });
  expect(await machine.calls()).toBe("");
});

test("an installation that fails is told with the package manager's own words", async () => {
  await using machine = await makeMachine();
  await machine.put("broken", "");
  await expect(machine.ensure({ isRoot: true })).rejects.toMatchObject({
    code: "IMAGE_NOT_FOUND",
    details: { aptGet: "E: Unable to locate package" },
  });
});

async function makeMachine() {
  const directory = await mkdtemp(join(tmpdir(), "aido-packages-test-"));
  const put = (name: string, text: string) => writeFile(join(directory, name), text, { mode: 0o755 });
  await put("apt-get", APT_GET);
  return {
    directory,
    put,
    calls: () => readFile(join(directory, "calls"), "utf8").catch(() => ""),
    ensure: (options: { isRoot: boolean; onProgress?: (step: string) => void }) =>
      ensureProgram(
        { program: "wanted", package: "wanted-package", within: directory },
        { searchPath: directory, ...options },
      ),
    [Symbol.asyncDispose]: async () => await rm(directory, { recursive: true, force: true }),
  };
}

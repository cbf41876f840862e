// What the suites could leave behind: containers, processes, mounts, control groups, temporary files.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const CGROUP_ROOT = "/sys/fs/cgroup";

/** One line per thing found; the suites compare before and after. `temporary` is where they put their files. */
export function leftovers(temporary) {
  const files = [...new Set([tmpdir(), temporary])].flatMap(temporaryFiles);
  return [...containers(), ...processes(), ...mounts(), ...controlGroups(), ...files];
}

function containers() {
  // With all that tells which test made it.
  const format = "{{.ID}} {{.Image}} {{.CreatedAt}} {{.Labels}} {{.Mounts}}";
  const list = ["ps", "-a", "--no-trunc", "--filter", "label=dev.aido.sandbox", "--format", format];
  const listed = spawnSync("docker", list, { encoding: "utf8", timeout: 20_000 });
  return listed.status === 0 ? lines(listed.stdout).map((container) => `container ${container}`) : [];
}

function processes() {
  const found = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const argv = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      if (/(^|\/)(aido-agent(-asan)?|bwrap|runsc|docker-registry)$/.test(argv[0] ?? "")) {
        found.push(`process ${pid} ${argv.join(" ").slice(0, 1000)}`);
      }
    } catch {
      // It ended between the listing and the look.
    }
  }
  return found;
}

function mounts() {
  return (
    readFileSync("/proc/self/mounts", "utf8")
      .split("\n")
      // The tests' own engine still runs while this looks.
      .filter((line) => /\/aido-(?!test)|\.aido\//.test(line) && !line.includes("/aido-test"))
      .map((line) => `mount ${line.split(" ")[1]}`)
  );
}

function controlGroups() {
  const found = [];
  for (const parent of ["", ...names(CGROUP_ROOT)]) {
    for (const name of names(join(CGROUP_ROOT, parent))) {
      if (name.startsWith("aido")) found.push(`control group ${join(parent, name)}`);
    }
  }
  return [...new Set(found)];
}

function temporaryFiles(directory) {
  return names(directory)
    .filter((name) => name.startsWith("aido") && !name.startsWith("aido-suites-"))
    .map((name) => `temporary file ${name}`);
}

function names(directory) {
  try {
    return existsSync(directory) ? readdirSync(directory) : [];
  } catch {
    return [];
  }
}

function lines(text) {
  return text.split("\n").filter((line) => line !== "");
}

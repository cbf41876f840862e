// Bundles the command line, so that a command loads a few compiled files instead of some two hundred. What is
// imported lazily stays in chunks of its own: a command pays only for what it uses.
import { chmodSync, cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { cachePath, compileChunk } from "../packages/aido/dist/cli/load-bundle.js";
import { SWARM_STATE_SCHEMA } from "../packages/aido/dist/core/swarm/state/swarm-state-schema.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const source = join(root, "packages/aido/src");
const target = join(root, "packages/aido/dist/bundle");
const adapter = join(root, "packages/aido/dist/acp-adapter.cjs");

const { dependencies, version } = JSON.parse(readFileSync(join(root, "packages/aido/package.json"), "utf8"));

/** Its modules refer to each other in circles, which a border between chunks would break. */
function comesWithDocker(id) {
  const [, name] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id) ?? [];
  if (name === undefined)
    return /\/drivers\/docker\/(?!engine-address|first-questions|system-socket)/.test(id);
  return name === "dockerode" || !Object.hasOwn(dependencies, name);
}

/** Chunks that would otherwise be many small ones. The rest is split by who needs it. */
const CHUNKS = [
  // Every command that opens a data directory needs all of it. What few need is opened by compose/open-*.ts, behind
  // core's deferred-*.ts, and loaded when it is first used; what stores are made of (*-store.ts) is not.
  [
    "core",
    /\/(aido\/src\/(core\/(?!doctor\/|(agent|batch|job|ssh|swarm|workflow)\/(?!deferred-|[\w-]+-store\.))|stores\/|compose(?!\/(open-|ask-|agents|api-operations|housekeeping))|log\/)|node_modules\/(nanoid|libsql)\/)/,
  ],
  ["docker", comesWithDocker],
  ["local", /\/drivers\/local\//],
  ["shared", /\/(sdk\/src\/(?!schemas)|cli\/(output\/(?!swarm\/)|commands\/exit-code))/],
];

/**
 * Parts of Docker's library that load much and are not needed for an engine on this machine: ssh, TLS, image builds.
 * Each is loaded from its package when it is first used. The sources defer the largest of them without a bundler.
 */
const DEFERRED =
  /\/node_modules\/(dockerode\/lib\/(?:session|buildkit)\.js|docker-modem\/lib\/ssh\.js|(?:tar-fs|@balena\/dockerignore)(?=\/))/;
const deferred = (name) => `
  const { createRequire } = require("node:module");
  const real = () => createRequire(createRequire(import.meta.url).resolve("dockerode"))(${JSON.stringify(name)});
  module.exports = new Proxy(function () {}, {
    apply: (_, self, args) => Reflect.apply(real(), self, args),
    get: (_, key) => real()[key],
  });`;

const docker = {
  name: "docker",
  load(id) {
    if (id.endsWith("/drivers/docker/load-dockerode.ts"))
      return 'import Docker from "dockerode";\nexport const loadDockerode = () => Docker;\n';
    const [, name] = DEFERRED.exec(id) ?? [];
    if (name !== undefined) return deferred(name);
    if (id.endsWith("/docker-modem/lib/http.js")) return readFileSync(id, "utf8").replace(...LATE_HTTPS);
    if (id.endsWith("/docker-modem/lib/modem.js")) return readFileSync(id, "utf8").replace(...QUIETLY);
    return undefined;
  },
};
/** It describes each request in full for its debug log, even when there is none. */
const QUIETLY = ["debug('Sending: %s', util.inspect(", "debug.enabled && debug('Sending: %s', util.inspect("];
const LATE_HTTPS = ["require('https')", "{ request: (...args) => require('https').request(...args) }"];

/**
 * With libsql's own JavaScript in the bundle, its binary is all that has to be found among the packages: looking for
 * those one after the other takes longer than opening a database.
 */
const libsql = {
  name: "libsql",
  load(id) {
    if (id.endsWith("/stores/sqlite/load-libsql.ts")) return BUNDLED_LIBSQL;
    if (!id.endsWith("/node_modules/libsql/index.js")) return undefined;
    const text = readFileSync(id, "utf8");
    const changed = OWN_SEARCH.reduce((before, [from, to]) => before.replace(from, () => to), text);
    if (/neon-rs|detect-libc/.test(changed))
      throw new Error("libsql looks for its binary in another way now");
    return changed;
  },
};
const BUNDLED_LIBSQL = `
  import { createRequire } from "node:module";
  import { libsqlTarget } from "./libsql-target.ts";
  export const loadLibsql = () =>
    libsqlTarget() === undefined ? createRequire(import.meta.url)("libsql") : require("libsql");`;
const OWN_SEARCH = [
  [/^const \{[^}]*\} = require\("@neon-rs\/load"\);$/m, ""],
  [/^const \{[^}]*\} = require\("detect-libc"\);$/m, 'const { loadNative } = require("@libsql-target");'],
  [/^function requireNative\(\) \{\n(?: .*\n|\n)*\}$/m, ""],
  ["} = requireNative();", "} = loadNative(__filename);"],
];

async function bundle(rolldown, dir) {
  const made = await rolldown({
    input: { main: join(source, "cli/bundled-main.ts"), aido: join(source, "cli/run-process.ts") },
    platform: "node",
    transform: { target: "node20.19" },
    resolve: {
      conditionNames: ["source"],
      alias: {
        "readable-stream": "node:stream",
        "@libsql-target": join(source, "stores/sqlite/libsql-target.ts"),
      },
    },
    plugins: [docker, libsql],
    preserveEntrySignatures: "allow-extension",
    // That something is imported both ways is of no harm.
    checks: { ineffectiveDynamicImport: false },
    logLevel: "warn",
  });
  await made.write({
    dir,
    format: "cjs",
    sourcemap: true,
    banner: (chunk) => (chunk.name === "main" ? "#!/usr/bin/env node" : ""),
    entryFileNames: "[name].cjs",
    chunkFileNames: "[name].cjs",
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: CHUNKS.map(([name, test]) => ({ name, test })),
    },
  });
  await made.close();
}

/** What runs in a swarm's workers: one file without dependencies, for the Node of their image, which may be older. */
async function bundleAdapter(rolldown, file) {
  const made = await rolldown({
    input: join(source, "swarm-adapter/main.ts"),
    platform: "node",
    transform: { target: "node18", define: { ADAPTER_VERSION: JSON.stringify(version) } },
    resolve: { conditionNames: ["source"] },
    checks: { ineffectiveDynamicImport: false },
    logLevel: "warn",
  });
  await made.write({ file, format: "cjs", banner: "#!/usr/bin/env node", codeSplitting: false });
  await made.close();
  chmodSync(file, 0o755);
}

/** A text with one character beyond ASCII takes twice the memory, and several times as long to read. */
function escapeBeyondAscii(directory) {
  for (const name of readdirSync(directory).filter((name) => name.endsWith(".cjs"))) {
    const path = join(directory, name);
    const escaped = readFileSync(path, "utf8").replace(
      /[^\0-\x7f]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
    writeFileSync(path, escaped);
  }
}

/** A chunk that is loaded while it loads another would find nothing in it. */
function refuseCircles(directory) {
  const needs = (name) =>
    [...readFileSync(join(directory, name), "utf8").matchAll(/^const \w+ = require\("\.\/(.+?)"\);$/gm)].map(
      ([, id]) => id,
    );
  const visit = (name, path) => {
    if (path.includes(name)) throw new Error(`chunks that load each other: ${[...path, name].join(" → ")}`);
    for (const next of needs(name)) visit(next, [...path, name]);
  };
  for (const name of readdirSync(directory).filter((name) => name.endsWith(".cjs"))) visit(name, []);
}

/** Every function, not only those that run while loading; the flags are put back because the caches name them. */
function compile(directory) {
  setFlagsFromString("--no-lazy");
  setFlagsFromString("--no-flush-bytecode");
  const chunks = readdirSync(directory).filter((name) => name.endsWith(".cjs") && name !== "main.cjs");
  const scripts = chunks.map((name) => [name, compileChunk(join(directory, name))]);
  setFlagsFromString("--lazy");
  setFlagsFromString("--flush-bytecode");
  for (const [name, script] of scripts)
    writeFileSync(cachePath(join(directory, name)), script.createCachedData());
}

// For other tools: the very schema that aido checks with.
writeFileSync(
  join(root, "packages/aido/dist/swarm-state.schema.json"),
  `${JSON.stringify(SWARM_STATE_SCHEMA, undefined, 2)}\n`,
);

// What the images of swarms are made of.
cpSync(join(root, "images/swarm-base"), join(root, "packages/aido/dist/swarm-base"), { recursive: true });

const fresh = `${target}.new`;
rmSync(fresh, { recursive: true, force: true });
let rolldown;
try {
  ({ rolldown } = await import("rolldown"));
} catch (error) {
  console.error(
    `The command line is not bundled and starts more slowly, and swarms cannot run: ${error.message}`,
  );
}
if (rolldown !== undefined) {
  await bundle(rolldown, fresh);
  escapeBeyondAscii(fresh);
  refuseCircles(fresh);
  await bundleAdapter(rolldown, `${adapter}.new`);
  renameSync(`${adapter}.new`, adapter);
}
rmSync(target, { recursive: true, force: true });
if (rolldown !== undefined) {
  renameSync(fresh, target);
  // In its place: what is compiled remembers its path.
  compile(target);
}

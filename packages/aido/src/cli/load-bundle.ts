import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { constants, Script } from "node:vm";

type Load = (exports: object, require: unknown, module: object, filename: string, dirname: string) => void;

/** The entry of the bundle, whose chunks are loaded when they are first required. */
export function loadBundle<T>(entry: string): T {
  const directory = dirname(entry);
  const fromPackages = createRequire(entry);
  const loaded = new Map<string, { exports: object }>();
  const load = (path: string): object => {
    const known = loaded.get(path);
    if (known !== undefined) return known.exports;
    const module = { exports: {} };
    loaded.set(path, module);
    (compileChunk(path, compiled(path)).runInThisContext() as Load)(
      module.exports,
      require,
      module,
      path,
      directory,
    );
    return module.exports;
  };
  const require = (id: string): unknown => {
    if (id.startsWith("./")) return load(join(directory, id));
    return SELDOM_USED.has(id) ? whenUsed(() => fromPackages(id)) : (fromPackages(id) as unknown);
  };
  return load(entry) as T;
}

/** Parts of Node that take milliseconds to load and that most commands import without coming to use them. */
const SELDOM_USED = new Set(
  [
    ...["child_process", "perf_hooks", "readline", "readline/promises", "stream/consumers", "tty", "zlib"],
  ].map((name) => `node:${name}`),
);

function whenUsed(load: () => object): object {
  return new Proxy({}, { get: (_, key) => Reflect.get(load(), key) });
}

/**
 * `cachedData` is what V8 made of the same text at build time, which spares compiling it. V8 takes it only if it is
 * of this very version; any other Node compiles the text.
 */
export function compileChunk(path: string, cachedData?: Buffer): Script {
  // The build leaves nothing beyond ASCII in it.
  const text = readFileSync(path, "latin1");
  return new Script(`(function (exports, require, module, __filename, __dirname) {${text}\n})`, {
    filename: path,
    ...(cachedData === undefined ? {} : { cachedData }),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
}

export const cachePath = (path: string): string => `${path}.cache`;

function compiled(path: string): Buffer | undefined {
  try {
    return readFileSync(cachePath(path));
  } catch {
    return undefined;
  }
}

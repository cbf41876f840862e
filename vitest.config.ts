import { defineConfig } from "vitest/config";

/** One project per backend: a suite names what it needs by its file name, `x.<backend>.test.ts`. */
const project = (name: string, include: string[], options: object = {}) => ({
  extends: true as const,
  test: { name, include, exclude: ["**/node_modules/**", "**/dist/**"], ...options },
});
const REAL = ["docker", "local", "hostile", "e2e", "agent"];

export default defineConfig({
  resolve: { conditions: ["source"] },
  ssr: { resolve: { conditions: ["source"], externalConditions: ["source"] } },
  test: {
    pool: "forks",
    // A suite's files share one process: starting one for each, which loads the same sources, takes longer than most tests.
    isolate: false,
    // A second, which is the default, is short on a machine that has other things to do.
    expect: { poll: { timeout: 20_000 } },
    // Every suite loads most of the sources: translated once, they serve all of them.
    experimental: { fsModuleCache: true, fsModuleCachePath: ".cache/vitest" },
    projects: [
      project("unit", ["packages/*/src/**/*.test.ts"], {
        exclude: ["**/node_modules/**", "**/dist/**", ...REAL.map((name) => `**/*.${name}.test.ts`)],
        testTimeout: 20_000,
        // They mostly compute and touch nothing that others have; one alone would leave a processor idle at the end.
        maxWorkers: 2,
      }),
      ...REAL.map((name) =>
        project(
          name,
          [
            `packages/*/src/**/*.${name}.test.ts`,
            `packages/aido/test/**/*.${name}.test.ts`,
            `agent/test/**/*.${name}.test.ts`,
          ],
          {
            testTimeout: 120_000,
            hookTimeout: 180_000,
            fileParallelism: false,
          },
        ),
      ),
    ],
  },
});

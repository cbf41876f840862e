import { isAidoError } from "@aido/sdk/protocol";
import type { Supervisor } from "../supervisor/supervisor.ts";
import type { WorkspaceWriter } from "./rollback.ts";
import type { WorkspaceReader } from "./workspace-scanner.ts";

export interface Workspace extends WorkspaceReader, WorkspaceWriter {
  writeIfMissing(path: string, content: Buffer, signal?: AbortSignal): Promise<void>;
}

/** The workspace as the supervisor shows it: through its builtin tools, as the sandbox's user. */
export function supervisorWorkspace(supervisor: () => Supervisor, workdir: () => string): Workspace {
  const run = (tool: string, path: string, rest: readonly string[], options: object) =>
    supervisor().tool([tool, workdir(), path, ...rest], options);
  return {
    async *tool([name = "", ...rest], options = {}) {
      const tool = run(name, ".", rest, options);
      yield* tool.stdout;
      await tool.done;
    },
    async prune(paths, signal) {
      const stdin = Buffer.from(paths.map((path) => `${path}\0`).join(""), "latin1");
      await run("prune", ".", [], { stdin, signal }).done;
    },
    async extract(archive, signal) {
      await run("untar", ".", [], { stdin: archive, signal }).done;
    },
    async writeIfMissing(path, content, signal) {
      try {
        await run("stat", path, [], { signal }).done;
      } catch (thrown) {
        if (!isAidoError(thrown, "FILE_NOT_FOUND")) throw thrown;
        await run("write", path, ["644"], { stdin: content, signal }).done;
      }
    },
  };
}

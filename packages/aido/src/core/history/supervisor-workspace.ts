import { isAidoError } from "@aido/sdk/protocol";
import type { Supervisor } from "../supervisor/supervisor.ts";
import type { WorkspaceWriter } from "./rollback.ts";
import type { WorkspaceReader } from "./workspace-scanner.ts";

/** The workspace as the supervisor shows it: through its builtin tools, as the sandbox's user. */
export function supervisorWorkspace(
  supervisor: Supervisor,
  workdir: string,
): WorkspaceReader & WorkspaceWriter & { writeIfMissing(path: string, content: Buffer): Promise<void> } {
  return {
    async *tool(argv, stdin) {
      const [name = "", ...rest] = argv;
      const run = supervisor.tool([name, workdir, ".", ...rest], { stdin });
      yield* run.stdout;
      await run.done;
    },
    async prune(paths) {
      const stdin = Buffer.from(paths.map((path) => `${path}\0`).join(""), "latin1");
      await supervisor.tool(["prune", workdir, "."], { stdin }).done;
    },
    async extract(archive) {
      await supervisor.tool(["untar", workdir, "."], { stdin: archive }).done;
    },
    async writeIfMissing(path, content) {
      try {
        await supervisor.tool(["stat", workdir, path]).done;
      } catch (thrown) {
        if (!isAidoError(thrown, "FILE_NOT_FOUND")) throw thrown;
        await supervisor.tool(["write", workdir, path, "644"], { stdin: content }).done;
      }
    },
  };
}

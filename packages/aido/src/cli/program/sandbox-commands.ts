import type { Command } from "commander";
import { type Act, collect } from "./act.ts";
import { examples } from "./examples.ts";

export function declareSandboxCommands(program: Command, act: Act): void {
  declareCreate(program, act);
  declareList(program, act);
  declareStartAndStop(program, act);
  declareLife(program, act);
  declareReap(program, act);
  declareInspect(program, act);
  declareStats(program, act);
  // The same under the noun, for those who look there.
  const sandbox = program.commands.find((command) => command.name() === "sandbox");
  if (sandbox === undefined) return;
  declareStartAndStop(sandbox, act);
  declareInspect(sandbox, act);
  declareToken(sandbox, act);
}

function declareToken(sandbox: Command, act: Act): void {
  const token = sandbox
    .command("token")
    .argument("<sandbox>", "its id or name")
    .summary("give a sandbox's sidecar API a new token")
    .description(
      "Give a sandbox's sidecar API a new token and print it, this once. The token before opens nothing any more.",
    )
    .action((name: string) =>
      act({ run: async (context) => (await import("../commands/token.ts")).issueToken(context, name) }),
    );
  examples(token, [["aido sandbox token web > web.token", "the token goes to a file, the address is shown"]]);
}

function declareCreate(program: Command, act: Act): void {
  const create = program
    .command("create")
    .summary("make and start a plain sandbox")
    .description("Make and start a sandbox that takes commands with `exec` and `shell`. Prints its id.")
    .option("--image <image>", "what it is made from")
    .option("--name <name>", "a name that can be used instead of the id")
    .option("--profile <name>", "defaults to start from: aido, server, sidecar, swarm or agent")
    .option("--ttl <duration>", "how long it may live, such as 30m; 0 means no end")
    .option("--idle-timeout <duration>", "stop it when nobody has used it for so long, such as 30m")
    .option("--auto-resume", "start it again when it is stopped and somebody uses it")
    .option("--workspace <name>", "files it works on and leaves to the next; a new name makes an empty one")
    .option("--snapshot-destination <url>", "place beneath which its snapshots go, such as s3://bucket/mine")
    .option("--cpus <number>", "share of processors, such as 0.5")
    .option("--memory <size>", "most memory, such as 512m")
    .option("--pids <number>", "most processes")
    .option("--disk <size>", "most disk space, such as 2g")
    .option("-e, --env <NAME=value>", "set a variable; NAME alone passes its value on (repeatable)", collect)
    .option("--label <NAME=value>", "mark it (repeatable)", collect)
    .option("--network <kind>", "none (default), or bridge: outside, but no other sandbox")
    .option("--isolation <level>", "container (default), gvisor, sysbox or kata; refused when not available")
    .option("-w, --workdir <path>", "where commands start")
    .option("-u, --user <user>", "who commands run as: uid, uid:gid or a name of the image")
    .option("--history", "record how execs change its workspace: see history, diff and rollback")
    .option("--dangerous-allow-host-network", "give it the host's own network")
    .option("--dangerous-allow-privileged", "give it full privileges of the engine")
    .action((options: object) =>
      act({ run: async (context) => (await import("../commands/create.ts")).create(context, options) }),
    );
  examples(create, [
    ["aido create --image python:3.12-slim", "a sandbox to try things in"],
    ["aido create --name web --memory 1g --ttl 2h", "named, with limits"],
    ["aido create --idle-timeout 30m --auto-resume", "stops when unused, comes back when used"],
    ["aido create --isolation gvisor", "behind a user-space kernel"],
  ]);
}

function declareList(program: Command, act: Act): void {
  const list = program
    .command("ls")
    .summary("list sandboxes, newest first")
    .description("List sandboxes, newest first. The same as `aido sandbox list`.")
    .option("-a, --all", "deleted ones too")
    .option("--label <NAME=value>", "only those with this label (repeatable)", collect)
    .action((options: object) =>
      act({ run: async (context) => (await import("../commands/list.ts")).list(context, options) }),
    );
  examples(list, [
    ["aido ls", "what is there"],
    ["aido ls --quiet", "ids only, for scripts"],
  ]);
}

function declareStartAndStop(program: Command, act: Act): void {
  const start = program
    .command("start")
    .summary("start stopped sandboxes")
    .description("Start stopped sandboxes; their files are as they were.")
    .argument("<sandbox...>", "ids, unique beginnings of ids, or names")
    .action((sandboxes: string[]) =>
      act({ run: async (context) => (await import("../commands/lifecycle.ts")).start(context, sandboxes) }),
    );
  examples(start, [["aido start web", "start it again"]]);
  const stop = program
    .command("stop")
    .summary("stop running sandboxes")
    .description("End every process of the sandboxes; their files stay.")
    .argument("<sandbox...>", "ids, unique beginnings of ids, or names")
    .option("--grace <duration>", "time between TERM and KILL, such as 10s")
    .action((sandboxes: string[], options: object) =>
      act({
        run: async (context) => (await import("../commands/lifecycle.ts")).stop(context, sandboxes, options),
      }),
    );
  examples(stop, [["aido stop web --grace 2s", "two seconds to finish"]]);
}

function declareLife(program: Command, act: Act): void {
  const ttl = program
    .command("ttl")
    .summary("change how long a sandbox may live")
    .description("Set how long a sandbox may live from now on.")
    .argument("<sandbox>", "id, unique beginning of an id, or name")
    .argument("<duration>", "such as 30m; 0 means no end")
    .action((sandbox: string, duration: string) =>
      act({
        run: async (context) => (await import("../commands/lifecycle.ts")).setTtl(context, sandbox, duration),
      }),
    );
  examples(ttl, [["aido ttl web 1h", "one hour from now"]]);
  const remove = program
    .command("rm")
    .alias("destroy")
    .summary("destroy sandboxes and their files")
    .description("Stop and remove sandboxes, their containers and their files. Their evidence is kept.")
    .argument("[sandbox...]", "ids, unique beginnings of ids, or names")
    .option("--all", "every sandbox")
    .action((sandboxes: string[], options: object) =>
      act({
        run: async (context) => (await import("../commands/destroy.ts")).destroy(context, sandboxes, options),
      }),
    );
  examples(remove, [
    ["aido rm web ab12", "two of them"],
    ["aido rm --all", "all of them"],
  ]);
}

function declareReap(program: Command, act: Act): void {
  const gc = program
    .command("gc")
    .summary("put away sandboxes that have been stopped for long")
    .description(
      "Move sandboxes that nobody has resumed for long to the next tier: from a stopped container to an image, to the " +
        "object store, and in the end away. `aido serve` does it by itself; `aido start` brings any of them back.",
    )
    .option("--dry-run", "say what would be moved, and move nothing")
    .action((options: object) =>
      act({ run: async (context) => (await import("../commands/gc.ts")).gc(context, options) }),
    );
  examples(gc, [
    ["aido gc --dry-run", "what is due now"],
    ["aido gc --json | jq .failed", "collect, and list what could not be moved"],
  ]);
  const reap = program
    .command("reap")
    .summary("stop idle sandboxes, destroy expired ones")
    .description(
      "Stop sandboxes that nobody has used for their idle timeout and destroy those whose life is over. A server " +
        "does it by itself.",
    )
    .option("-n, --dry-run", "say what would be ended, and end nothing")
    .action((options: object) =>
      act({ run: async (context) => (await import("../commands/reap.ts")).reap(context, options) }),
    );
  examples(reap, [
    ["aido reap --dry-run", "what is idle now"],
    ["aido reap --json | jq .idle", "stop them, and list their ids"],
  ]);
}

function declareInspect(program: Command, act: Act): void {
  const inspect = program
    .command("inspect")
    .summary("show all about a sandbox")
    .description("Show a sandbox's settings, state and execs.")
    .argument("<sandbox>", "id, unique beginning of an id, or name")
    .action((sandbox: string) =>
      act({ run: async (context) => (await import("../commands/inspect.ts")).inspect(context, sandbox) }),
    );
  examples(inspect, [["aido inspect web --json | jq .limits", "one part of it"]]);
}

function declareStats(program: Command, act: Act): void {
  const stats = program
    .command("stats")
    .summary("show processor, memory and process counts")
    .description("Show what a sandbox, or every running one, uses.")
    .argument("[sandbox]", "id, unique beginning of an id, or name")
    .option("-w, --watch", "again and again, until Ctrl-C")
    .option("--interval <duration>", "time between two looks (default: 1s)")
    .action((sandbox: string | undefined, options: object) =>
      act({
        streams: "watch" in options,
        run: async (context) => (await import("../commands/stats.ts")).stats(context, sandbox, options),
      }),
    );
  examples(stats, [
    ["aido stats", "every running sandbox, once"],
    ["aido stats web --watch", "one sandbox, live"],
  ]);
}

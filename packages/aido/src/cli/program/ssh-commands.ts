import type { Command } from "commander";
import type { Act } from "./act.ts";
import { examples } from "./examples.ts";

const SANDBOX = "id, unique beginning of an id, or name";
const USER = "log in as this user inside (default: the sandbox's own)";

export function declareSshCommands(program: Command, act: Act): void {
  const ssh = program
    .command("ssh")
    .summary("log in to a sandbox with an SSH client")
    .description(
      "Log in to sandboxes with an SSH client, copy files with scp and sftp. A server that listens for SSH must run: " +
        "`aido serve --ssh-port 2222`. Images need no sshd.",
    );
  const connect = ssh
    .command("connect", { isDefault: true })
    .summary("run ssh, or print how to")
    .description("Run ssh for a sandbox, or print the command. `connect` may be left out.")
    .argument("<sandbox>", SANDBOX)
    .argument("[command...]", "what to run there (default: a shell)")
    .option("-u, --user <name>", USER)
    .option("-i, --identity <file>", "the private key to use (default: as ssh chooses)")
    .option("--print", "print the command instead of running it")
    .action((sandbox: string, command: string[], options: object) =>
      act({
        run: async (context) =>
          (await import("../commands/ssh.ts")).connect(context, sandbox, command, options),
        passesExitCode: true,
      }),
    );
  examples(connect, [
    ["aido ssh web", "a shell"],
    ["aido ssh web -- uname -a", "one command"],
    ["aido ssh web --print", "for use with scp, sftp or an editor"],
  ]);
  const add = ssh
    .command("add-key")
    .summary("let a key log in")
    .description("Let an SSH key log in to a sandbox. A key that may already stays as it is.")
    .argument("<sandbox>", SANDBOX)
    .argument("[key]", "a public key or a file that holds one (default: as in ~/.ssh)")
    .option("-u, --user <name>", USER)
    .action((sandbox: string, key: string | undefined, options: object) =>
      act({
        run: async (context) => (await import("../commands/ssh.ts")).addKey(context, sandbox, key, options),
      }),
    );
  examples(add, [
    ["aido ssh add-key web", "the key in ~/.ssh"],
    ["aido ssh add-key web ./ci.pub", "the key in a file"],
  ]);
  const remove = ssh
    .command("rm-key")
    .summary("revoke a key")
    .description("Revoke an SSH key. It is refused from then on, and connections made with it end.")
    .argument("<sandbox>", SANDBOX)
    .argument("<key>", "its fingerprint, the public key, or a file that holds it")
    .option("-u, --user <name>", "the user it logs in as (default: the sandbox's own)")
    .action((sandbox: string, key: string, options: object) =>
      act({
        run: async (context) =>
          (await import("../commands/ssh.ts")).removeKey(context, sandbox, key, options),
      }),
    );
  examples(remove, [["aido ssh rm-key web ./ci.pub", "at once"]]);
  const keys = ssh
    .command("keys")
    .summary("list keys")
    .description("List the SSH keys that may log in to a sandbox.")
    .argument("<sandbox>", SANDBOX)
    .action((sandbox: string) =>
      act({ run: async (context) => (await import("../commands/ssh.ts")).listKeys(context, sandbox) }),
    );
  examples(keys, [["aido ssh keys web", "fingerprints, users, comments"]]);
}

import type { Config } from "../config/config.ts";
import type { CoreAido } from "../core/core-aido.ts";
import { DataDir } from "../core/data-dir.ts";
import type { Logger } from "../core/logger.ts";
import type { SshUse } from "../ssh/ssh-connection.ts";

export interface OpenSsh {
  /** `host:port` */
  readonly address: string;
  close(): Promise<void>;
}

/** Listens for SSH clients when a port is set. The library is loaded only then. */
export async function openSsh(options: {
  aido: CoreAido;
  config: Config;
  logger: Logger;
  /** For the audit log. */
  onUse: (use: SshUse) => void;
}): Promise<OpenSsh | undefined> {
  const { aido, config, logger } = options;
  const { sshHost: host, sshPort: port } = config.serve;
  if (port === undefined) return undefined;
  const [{ startSshServer }, { hostKey }, { loadSshLibrary }] = await Promise.all([
    import("../ssh/ssh-server.ts"),
    import("../ssh/host-key.ts"),
    import("../ssh/ssh-library.ts"),
  ]);
  const library = await loadSshLibrary();
  const key = await hostKey(library, new DataDir(config.dataDir).sshHostKey);
  const server = await startSshServer({
    library,
    ssh: aido.ssh,
    execs: aido.execs,
    dial: (sandboxId, inside, signal) => aido.ports.dial(sandboxId, inside, signal),
    hold: (sandboxId) => aido.activity.begin(sandboxId, "connection"),
    onUse: options.onUse,
    logger,
    host,
    port,
    hostKey: key.privateKey,
  });
  await aido.ssh.listens({ host: server.host, port: server.port, hostKey: key.publicKey });
  return {
    address: `${server.host.includes(":") ? `[${server.host}]` : server.host}:${server.port}`,
    close: async () => {
      await aido.ssh.listens(undefined);
      await server.close();
    },
  };
}

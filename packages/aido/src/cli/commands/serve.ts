import type { CliContext, RunningServer } from "../context.ts";

export interface ServeOptions {
  host?: string;
  port?: string;
  sshPort?: string;
}

const ENTRANCES: Readonly<Record<RunningServer["entrance"], string>> = {
  guarded: "",
  open: "No keys are set: whoever reaches this address may do everything.\n",
  shut:
    "Every key is revoked or has expired: nobody gets in until `aido key create <name>` makes one. " +
    "AIDO_SERVE_OPEN=true lets everybody on this machine in once all are revoked.\n",
};

/** Serves until a signal: the first lets running requests end, a second one quits at once. */
export async function serve(context: CliContext, options: ServeOptions): Promise<number> {
  const server = await context.serve(options);
  // At once: whoever waits for the first line has the others with it.
  await context.stderr.write(
    [
      `Serving on ${server.url} with the driver ${server.driver}. API: ${server.url}/docs\n`,
      server.sshAddress === undefined ? "" : `Taking SSH logins on ${server.sshAddress}.\n`,
      ENTRANCES[server.entrance],
    ].join(""),
  );
  await new Promise<void>((resolve) => {
    let isStopping = false;
    for (const name of ["SIGINT", "SIGTERM"] as const) {
      context.signals.on(name, () => {
        if (isStopping) context.signals.die(name);
        isStopping = true;
        resolve();
      });
    }
  });
  await context.stderr.write("Shutting down; sandboxes run on. Ask once more to quit at once.\n");
  await server.close();
  return 0;
}

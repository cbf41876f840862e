import { execFile } from "node:child_process";

/** Runs docker's own command, for what a test needs besides the driver. */
export function docker(
  args: readonly string[],
  options: { input?: string; host?: string } = {},
): Promise<string> {
  const env = {
    ...process.env,
    // The classic builder takes a Dockerfile without any context.
    DOCKER_BUILDKIT: "0",
    ...(options.host === undefined ? {} : { DOCKER_HOST: options.host }),
  };
  return new Promise((resolve, reject) => {
    const child = execFile("docker", [...args], { env, timeout: 120_000 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout.trim());
      else reject(new Error(`docker ${args.join(" ")}: ${stderr}`, { cause: error }));
    });
    // A command that needs no input may have ended before it gets its end.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(options.input ?? "");
  });
}

/** A name for an image as long as a test lasts; one that is in use stays what it is and is an error. */
export async function tagImage(source: string, name: string): Promise<AsyncDisposable> {
  if ((await docker(["images", "-q", name])) !== "") throw new Error(`the image name ${name} is in use`);
  await docker(["tag", source, name]);
  return {
    [Symbol.asyncDispose]: async () => {
      await docker(["rmi", "--no-prune", name]);
    },
  };
}

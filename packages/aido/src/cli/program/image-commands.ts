import type { Command } from "commander";
import type { BuildImageOptions } from "../commands/image.ts";
import type { SwarmImageOptions } from "../commands/swarm-image.ts";
import { type Act, collect } from "./act.ts";
import { examples } from "./examples.ts";

interface BuildOptions extends BuildImageOptions, SwarmImageOptions {
  swarm?: boolean;
}

export function declareImageCommands(program: Command, act: Act): void {
  const image = program.command("image").description("List, pull, build and remove the images of sandboxes");
  const list = image
    .command("list")
    .summary("list images")
    .description("List the images that are here, and the short names of images.")
    .action(() =>
      act({ run: async (context) => (await import("../commands/image.ts")).listImages(context) }),
    );
  examples(list, [["aido image list", "names, sizes, ages"]]);
  const pull = image
    .command("pull")
    .summary("fetch an image")
    .description("Fetch an image before the first sandbox needs it.")
    .argument("<image>", "an image such as python:3.12-slim, or a short name such as go")
    .action((name: string) =>
      act({ run: async (context) => (await import("../commands/image.ts")).pullImage(context, name) }),
    );
  examples(pull, [["aido image pull ruby", "the image that this name means"]]);
  const build = image
    .command("build")
    .summary("build an image")
    .description(
      "Build an image from a directory with a Dockerfile, or from a base and packages, and print its name. The same again is not built twice. " +
        "With --swarm: the image that a swarm's workers run in, from the committed files of a project.",
    )
    .argument("[directory]", "what the Dockerfile may copy (default: this one); dot-files are left out")
    .option("--name <name>", "part of the image's name")
    .option("--file <path>", "the Dockerfile (default: Dockerfile in the directory)")
    .option("--include <pattern>", "only files like these; may be given several times", collect)
    .option("--base <image>", "an image or a short name to install packages on")
    .option("--apt <package>", "a Debian package; may be given several times", collect)
    .option("--pip <package>", "a Python package; may be given several times", collect)
    .option("--npm <package>", "a Node package; may be given several times", collect)
    .option("--label <name=value>", "a label; may be given several times", collect)
    .option("--swarm", "the image of a project for swarms, and the base before it");
  swarmImageOptions(build)
    .option("--base-only", "with --swarm: the base alone")
    .action((directory: string | undefined, options: BuildOptions) =>
      act({
        run: async (context) =>
          options.swarm
            ? (await import("../commands/swarm-image.ts")).buildSwarmImage(context, directory, options)
            : (await import("../commands/image.ts")).buildImage(context, directory, options),
      }),
    );
  examples(build, [
    ["aido image build --name tools .", "from ./Dockerfile"],
    ["aido image build --base python --pip pandas --pip requests==2.32.3", "a base and packages"],
    ["aido image build --swarm", "this project's image, for its swarm"],
    ["aido image build --swarm --base-only --from debian", "the base of swarms, without any registry"],
  ]);
  const remove = image
    .command("rm")
    .summary("remove an image")
    .description("Remove an image that was built with `aido image build`.")
    .argument("<image>", "as `aido image list` shows it")
    .action((name: string) =>
      act({ run: async (context) => (await import("../commands/image.ts")).removeImage(context, name) }),
    );
  examples(remove, [["aido image rm aido.local/tools:4f1c09ab3de2a771", "and free its space"]]);
}

/** Under the name that upstream's script has. */
export function declareBuildImageCommand(program: Command, act: Act): void {
  const build = program
    .command("build-image")
    .summary("build a project's image for its swarm")
    .description(
      "Build the image that a swarm's workers run in, or say that it is up to date: `aido image build --swarm` by another name.",
    )
    .argument("[directory]", "the project (default: the current directory)");
  swarmImageOptions(build).action((directory: string | undefined, options: SwarmImageOptions) =>
    act({
      run: async (context) =>
        (await import("../commands/swarm-image.ts")).buildSwarmImage(context, directory, options),
    }),
  );
  examples(build, [["aido build-image .", "prints aimi-sandbox-<project>:latest"]]);
}

function swarmImageOptions(command: Command): Command {
  return command
    .option(
      "--from <ground>",
      "of a swarm's base: an image, or `debian` for Debian's packages without any registry",
    )
    .option("--claude", "a swarm's base with the Claude Code CLI (default)")
    .option("--no-claude", "a swarm's base without it, for other agents")
    .option("--force", "make a swarm's image also when nothing has changed");
}

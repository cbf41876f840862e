import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { BuildFile, BuildImage, BuiltImage, ImageInfo } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { parsePairs } from "../options/pairs.ts";
import { formatAge, formatBytes } from "../output/format.ts";
import { note, printResult } from "../output/print.ts";
import { printable } from "../output/printable.ts";
import { type Column, table } from "../output/table.ts";
import { interruptible } from "./interrupt.ts";

export interface BuildImageOptions {
  name?: string;
  file?: string;
  include?: string[];
  base?: string;
  apt?: string[];
  pip?: string[];
  npm?: string[];
  label?: string[];
}

const DOCKERFILE = "Dockerfile";

export async function listImages(context: CliContext): Promise<number> {
  const aido = await context.open();
  const list = await aido.images.list();
  await printResult(context, list, () => {
    if (context.globals.quiet) return list.images.map(({ ref }) => `${printable(ref)}\n`).join("");
    const width = context.stdout.columns;
    const images = table(list.images, columns(context.now()), width);
    const aliases = table(
      list.aliases,
      [
        { title: "NAME", value: ({ alias }) => alias },
        { title: "MEANS", value: ({ image }) => image, flexible: true },
        { title: "HERE", value: ({ isHere }) => (isHere ? "yes" : "no") },
      ],
      width,
    );
    return `${images}\n${aliases}`;
  });
  return 0;
}

export async function pullImage(context: CliContext, image: string): Promise<number> {
  const aido = await context.open();
  return interruptible(context, async (signal) => {
    const pulled = await aido.images.pull(image, { signal, onProgress: context.progress.show });
    context.progress.clear();
    await printResult(context, pulled, () => `${printable(pulled.ref)}\n`);
    return 0;
  });
}

export async function buildImage(
  context: CliContext,
  directory: string | undefined,
  options: BuildImageOptions,
): Promise<number> {
  const request = await toRequest(context, directory, options);
  const aido = await context.open();
  return interruptible(context, async (signal) => {
    const built = await aido.images.build(request, { signal, onProgress: context.progress.show });
    context.progress.clear();
    await printResult(context, built, () => `${printable(built.ref)}\n`);
    await note(context, `${sentence(built)} Next: aido create --image ${printable(built.ref)}`);
    return 0;
  });
}

export async function removeImage(context: CliContext, image: string): Promise<number> {
  const aido = await context.open();
  await aido.images.remove(image);
  await printResult(context, { image, removed: true }, () => `Removed ${printable(image)}\n`);
  return 0;
}

async function toRequest(
  context: CliContext,
  directory: string | undefined,
  options: BuildImageOptions,
): Promise<BuildImage> {
  const { base, apt, pip, npm } = options;
  const common = { name: options.name, labels: parsePairs(options.label ?? [], "--label") };
  if (base !== undefined) {
    if (directory === undefined && options.file === undefined)
      return { ...common, base, packages: { apt, pip, npm } };
    throw new AidoError("VALIDATION_ERROR", "A base with packages takes no directory and no Dockerfile", {
      hint: "Write the packages into the Dockerfile, or leave the directory out.",
    });
  }
  if (apt !== undefined || pip !== undefined || npm !== undefined) {
    throw new AidoError("VALIDATION_ERROR", "Packages need a base to be installed on", {
      hint: "Add --base python, or another image.",
    });
  }
  const { collectInputs } = await import("../../spec/collect-inputs.ts");
  const root = resolve(context.cwd, directory ?? ".");
  const path = resolve(root, options.file ?? DOCKERFILE);
  const dockerfile = await readFile(path, "utf8").catch((cause: unknown) => {
    throw new AidoError("INPUT_NOT_FOUND", `There is no Dockerfile at ${path}`, {
      hint: "Name the directory that holds it, or write --base <image> and --apt, --pip or --npm; for a swarm's image, --swarm.",
      cause,
    });
  });
  const files: Record<string, BuildFile> = {};
  for (const file of await collectInputs(root, options.include ?? ["**"])) {
    if (file.path === DOCKERFILE) continue;
    const chunks: Uint8Array[] = [];
    for await (const chunk of file.content()) chunks.push(chunk);
    const base64 = Buffer.concat(chunks).toString("base64");
    files[file.path] = { base64, executable: file.executable === true };
  }
  return { ...common, dockerfile, files };
}

function sentence({ isCached, bytes }: BuiltImage): string {
  return isCached ? "It was built before." : `Built, ${formatBytes(bytes)}.`;
}

function columns(now: Date): Column<ImageInfo>[] {
  return [
    { title: "IMAGE", value: ({ ref }) => ref, flexible: true },
    { title: "ID", value: ({ id }) => id.replace("sha256:", "").slice(0, 12) },
    { title: "SIZE", value: ({ bytes }) => (bytes === 0 ? "-" : formatBytes(bytes)), align: "right" },
    {
      title: "CREATED",
      value: ({ createdAt }) => (createdAt === undefined ? "-" : formatAge(createdAt, now)),
    },
    { title: "BUILT HERE", value: ({ isBuilt }) => (isBuilt ? "yes" : "no") },
  ];
}

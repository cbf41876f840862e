import { resolve } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { note, printResult } from "../output/print.ts";
import { printable } from "../output/printable.ts";
import { interruptible } from "./interrupt.ts";

export interface UpOptions {
  spec?: string;
  template?: string;
  autoDestroy?: boolean;
}

export async function sandboxUp(context: CliContext, options: UpOptions): Promise<number> {
  const loaded = await load(context, options);
  const { toUpRequest } = await import("../../spec/up-request.ts");
  const request = await toUpRequest(loaded, { autoDestroy: options.autoDestroy });
  const { runs } = await context.open();
  return interruptible(context, async (signal) => {
    const run = await runs.up(request, { onProgress: context.progress.show, signal });
    context.progress.clear();
    await printResult(context, run, () => `${printable(run.id)}  ${run.status}\n`);
    await note(context, `Next: aido run <task> --sandbox ${run.id}`);
    return 0;
  });
}

async function load(context: CliContext, options: UpOptions) {
  const { loadSpec, loadTemplate, SPEC_FILE } = await import("../../spec/load-spec.ts");
  if (options.template === undefined) return loadSpec(resolve(context.cwd, options.spec ?? SPEC_FILE));
  if (options.spec !== undefined) {
    throw new AidoError("VALIDATION_ERROR", "--spec and --template exclude each other", {
      hint: "A spec can build on a template: write `template: python` in it.",
    });
  }
  const { isTemplateName, TEMPLATE_NAMES } = await import("../../spec/templates.ts");
  if (!isTemplateName(options.template)) {
    throw new AidoError("VALIDATION_ERROR", `There is no template "${options.template}"`, {
      hint: `Choose one of: ${TEMPLATE_NAMES.join(", ")}.`,
    });
  }
  return loadTemplate(options.template, context.cwd);
}

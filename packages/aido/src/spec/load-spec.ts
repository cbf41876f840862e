import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { AidoError, type RunSpec } from "@aido/sdk/protocol";
import { parseSpec } from "./parse-spec.ts";
import { TEMPLATES, type TemplateName } from "./templates.ts";

export const SPEC_FILE = "sandbox.yaml";

export interface LoadedSpec {
  spec: RunSpec;
  text: string;
  /** What the spec's paths are relative to: its own directory. */
  projectDir: string;
}

/** Reads and checks a spec file. Raises INVALID_SPEC. */
export async function loadSpec(path: string): Promise<LoadedSpec> {
  const text = await readFile(path, "utf8").catch((thrown: NodeJS.ErrnoException) => {
    throw unreadable(path, thrown);
  });
  return { spec: await parseSpec(text, path), text, projectDir: dirname(resolve(path)) };
}

/** The spec of a built-in template, for a project without a spec file. */
export async function loadTemplate(name: TemplateName, projectDir: string): Promise<LoadedSpec> {
  const { text } = TEMPLATES[name];
  return { spec: await parseSpec(text, `template ${name}`), text, projectDir };
}

function unreadable(path: string, cause: NodeJS.ErrnoException): AidoError {
  if (cause.code === "ENOENT") {
    return new AidoError("INVALID_SPEC", `There is no spec file ${path}`, {
      hint: "Name one with --spec, write a sandbox.yaml, or use --template python, node or bash.",
      details: { file: path },
      cause,
    });
  }
  return new AidoError(
    "INVALID_SPEC",
    `The spec file ${path} cannot be read (${cause.code ?? cause.message})`,
    {
      hint: "Check that it is a file and that you may read it.",
      details: { file: path },
      cause,
    },
  );
}

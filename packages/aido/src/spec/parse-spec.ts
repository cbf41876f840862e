import type { RunSpec } from "@aido/sdk/protocol";
import type { LineCounter, Node } from "yaml";
import { type RawSpec, readSpec } from "./read-spec.ts";
import { type SpecProblem, toSpecError } from "./spec-problem.ts";
import { SpecReader } from "./spec-reader.ts";
import { isTemplateName, TEMPLATES } from "./templates.ts";

const MAX_SPEC_CHARS = 1_048_576;

/** Parses the text of a `sandbox.yaml`. Raises INVALID_SPEC with every problem and its place. */
export async function parseSpec(text: string, file = "sandbox.yaml"): Promise<RunSpec> {
  const { raw, problems } = await read(text, file);
  const template = raw.template;
  const base = template !== undefined && isTemplateName(template) ? await parseTemplate(template) : {};
  const spec = complete(raw, base);
  // A key that is there but wrong has its own problem; saying that it is missing would be false.
  const isMissing = (key: string, value: unknown) => value === undefined && !raw.present.has(key);
  if (isMissing("name", spec.name)) problems.push(missing("name", "Add a line such as name: my-task."));
  if (isMissing("runtime", spec.runtime))
    problems.push(missing("runtime", "Add a line such as runtime: python (or node, bash, an image)."));
  if (isMissing("ttl", spec.ttlMs)) problems.push(missing("ttl", "Add a line such as ttl: 5m."));
  if (problems.length > 0) throw toSpecError(file, problems);
  return spec as RunSpec;
}

async function parseTemplate(name: keyof typeof TEMPLATES): Promise<Partial<RawSpec>> {
  return (await read(TEMPLATES[name].text, `template ${name}`)).raw;
}

async function read(text: string, file: string): Promise<{ raw: RawSpec; problems: SpecProblem[] }> {
  if (text.length > MAX_SPEC_CHARS) {
    throw toSpecError(file, [
      {
        line: 1,
        column: 1,
        path: "",
        text: "",
        message: "the file is larger than 1 MiB",
        fix: "Is it a spec?",
      },
    ]);
  }
  const yaml = await import("yaml");
  const lines = new yaml.LineCounter();
  const document = yaml.parseDocument(text, { lineCounter: lines, prettyErrors: false });
  if (document.errors.length > 0) throw toSpecError(file, yamlProblems(document.errors, lines, text));
  const reader = new SpecReader(yaml, document, lines, text);
  // An empty file has no node; an empty map at its start stands for it.
  const root = (document.contents ?? emptyMap(yaml)) as Node;
  const raw = readSpec(reader, { node: root, path: "" });
  return { raw, problems: reader.problems };
}

function emptyMap(yaml: typeof import("yaml")): Node {
  const map = new yaml.YAMLMap();
  map.range = [0, 0, 0];
  return map;
}

function yamlProblems(
  errors: readonly { message: string; pos: [number, number]; code: string }[],
  lines: LineCounter,
  text: string,
): SpecProblem[] {
  return errors.map((error) => {
    const { line, col } = lines.linePos(error.pos[0]);
    const found = (text.split("\n")[line - 1] ?? "").trim().slice(0, 60);
    const place = { line, column: col, path: "", text: found };
    if (error.code === "MULTIPLE_DOCS")
      return { ...place, message: "another document begins here", fix: "Keep one spec in each file." };
    const fix =
      error.code === "DUPLICATE_KEY" ? "Keep one of the two." : "Correct the YAML here; indent with spaces.";
    return { ...place, message: `not valid YAML: ${error.message}`, fix };
  });
}

function missing(path: string, fix: string): SpecProblem {
  return { line: 1, column: 1, path, text: "", message: `${path} is missing`, fix };
}

function complete(raw: RawSpec, base: Partial<RawSpec>): Partial<RunSpec> {
  return {
    ...pick("name", raw.name ?? base.name),
    ...pick("runtime", raw.runtime ?? base.runtime),
    ...pick("ttlMs", raw.ttlMs ?? base.ttlMs),
    inputs: raw.inputs ?? base.inputs ?? [],
    outputs: raw.outputs ?? base.outputs ?? [],
    limits: { ...base.limits, ...raw.limits },
    timeoutMs: raw.timeoutMs ?? base.timeoutMs ?? 0,
    env: { ...base.env, ...raw.env },
    network: raw.network ?? base.network ?? "none",
    ...pick("permissions", raw.permissions ?? base.permissions),
    steps: raw.steps ?? base.steps ?? [],
  };
}

function pick<K extends string, V>(key: K, value: V | undefined): Partial<Record<K, V>> {
  return value === undefined ? {} : ({ [key]: value } as Record<K, V>);
}

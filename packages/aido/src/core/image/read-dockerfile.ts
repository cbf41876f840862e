import { AidoError } from "@aido/sdk/protocol";

const INSTRUCTIONS = new Set(
  "ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR".split(
    " ",
  ),
);
const IMAGE = /^[A-Za-z0-9][A-Za-z0-9._/:@-]*$/;
const PLAIN_SOURCE = /^[A-Za-z0-9._/*?-]+$/;
/** Of FROM, COPY and ADD. Others, and any with quotes that the engine would take out, are refused. */
const FLAG = /^--(platform=[\w/.-]+|from=[A-Za-z0-9][A-Za-z0-9._/:@-]*|chown=[\w:.-]+|chmod=[0-7]+)$/;

interface Instruction {
  name: string;
  words: readonly string[];
  line: number;
}

/**
 * The images that a Dockerfile starts from or copies from. It is read more strictly than the engine reads it: what would
 * make the engine take anything from outside the request in another way, or could hide an image from this, is refused.
 */
export function readBases(dockerfile: string): readonly string[] {
  const bases = new Set<string>();
  const stages: string[] = [];
  // A stage can be copied from when the next has begun; until then its name would be that of an image.
  const isStage = (name: string, count: number) =>
    /^\d+$/.test(name) || stages.slice(0, count).includes(name.toLowerCase());
  for (const instruction of instructions(dockerfile)) {
    const { name, line } = instruction;
    if (name === "FROM") {
      const { image, stage } = readFrom(instruction);
      if (image !== "scratch" && !isStage(image, stages.length)) bases.add(image);
      stages.push(stage);
    } else if (stages.length === 0 && name !== "ARG") {
      throw refused(line, "the first instruction must be FROM", "Begin with FROM and an image.");
    }
    if (name === "COPY") {
      const source = splitFlags(instruction)
        .flags.find((flag) => flag.startsWith("--from="))
        ?.slice("--from=".length);
      if (source !== undefined && !isStage(source, stages.length - 1)) bases.add(source);
    }
    if (name === "RUN") refuseFlags(instruction);
    if (name === "ADD") refuseAddresses(instruction);
    if (name === "ONBUILD") {
      throw refused(line, "ONBUILD acts in builds to come", "Write what it says where it is needed.");
    }
  }
  if (stages.length === 0) throw refused(1, "there is no FROM", "Begin with FROM and an image.");
  return [...bases];
}

function* instructions(dockerfile: string): Generator<Instruction> {
  let text = "";
  let line = 0;
  let start = 0;
  for (const raw of dockerfile.replace(/^\ufeff/, "").split(/\r?\n/)) {
    line += 1;
    const trimmed = raw.trim();
    if (trimmed.startsWith("#")) {
      if (/^#\s*escape\s*=/i.test(trimmed)) {
        throw refused(line, "another escape character is not taken", "Remove the line and use backslashes.");
      }
      continue;
    }
    if (trimmed === "") continue;
    if (text === "") start = line;
    const continued = /\\[ \t]*$/.test(raw);
    text += continued ? raw.replace(/\\[ \t]*$/, "") : raw;
    if (continued) continue;
    yield toInstruction(text, start);
    text = "";
  }
  if (text !== "") yield toInstruction(text, start);
}

function toInstruction(text: string, line: number): Instruction {
  const [first = "", ...words] = text.trim().split(/\s+/);
  const name = first.toUpperCase();
  if (INSTRUCTIONS.has(name)) return { name, words, line };
  throw refused(line, `there is no instruction ${first.slice(0, 40)}`, "Each line begins with one.");
}

function readFrom(instruction: Instruction): { image: string; stage: string } {
  const [image = "", as, stage = "", ...more] = splitFlags(instruction).rest;
  const isWhole = more.length === 0 && (as === undefined || (as.toLowerCase() === "as" && stage !== ""));
  if (isWhole && IMAGE.test(image)) return { image, stage: stage.toLowerCase() };
  throw refused(
    instruction.line,
    "FROM must name an image, without variables or quotes",
    "Write the image itself.",
  );
}

function splitFlags({ name, words, line }: Instruction): { flags: string[]; rest: string[] } {
  const end = words.findIndex((word) => !word.startsWith("--"));
  const flags = words.slice(0, end < 0 ? words.length : end);
  const strange = flags.find((flag) => !FLAG.test(flag));
  if (strange === undefined) return { flags, rest: words.slice(flags.length) };
  throw refused(line, `${name} ${strange.slice(0, 40)} is not taken`, "Leave the option out.");
}

function refuseFlags({ words, line }: Instruction): void {
  const flag = words[0];
  if (flag === undefined || !flag.startsWith("--")) return;
  throw refused(
    line,
    `RUN ${flag.slice(0, 40)} is not taken`,
    "Write the command without options of the build.",
  );
}

/** The engine fetches addresses itself, from wherever it stands. */
function refuseAddresses(instruction: Instruction): void {
  const sources = splitFlags(instruction).rest.slice(0, -1);
  if (sources.length > 0 && sources.every((source) => PLAIN_SOURCE.test(source))) return;
  throw refused(
    instruction.line,
    "ADD takes files of the request only",
    "Use COPY, or fetch addresses with RUN.",
  );
}

function refused(line: number, why: string, hint: string): AidoError {
  return new AidoError("VALIDATION_ERROR", `Line ${line} of the Dockerfile: ${why}`, {
    hint,
    details: { field: "dockerfile", line },
  });
}

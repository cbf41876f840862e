import { realpathSync } from "node:fs";
import { AidoError } from "@aido/sdk/protocol";
import { findProgram } from "./find-program.ts";

/** Where a program must lie to exist inside: /bin and /sbin are links into /usr on some hosts, not on others. */
export const VISIBLE_PATH = "/usr/local/bin:/usr/bin:/bin";

interface Runtime {
  program: string;
  /** Debian's and Ubuntu's package that brings it. */
  package: string;
}

const RUNTIMES = {
  python: { program: "python3", package: "python3" },
  node: { program: "node", package: "nodejs" },
  bash: { program: "bash", package: "bash" },
  go: { program: "go", package: "golang-go" },
  rust: { program: "cargo", package: "cargo" },
  java: { program: "java", package: "default-jdk-headless" },
  ruby: { program: "ruby", package: "ruby" },
} as const satisfies Record<string, Runtime>;

const WORDS = new Map<string, keyof typeof RUNTIMES>(
  Object.entries({
    python: "python",
    python3: "python",
    "@ai-sandbox/python": "python",
    node: "node",
    nodejs: "node",
    javascript: "node",
    "@ai-sandbox/node": "node",
    "@ai-sandbox/nodejs": "node",
    bash: "bash",
    sh: "bash",
    shell: "bash",
    ubuntu: "bash",
    debian: "bash",
    "@ai-sandbox/bash": "bash",
    go: "go",
    golang: "go",
    rust: "rust",
    java: "java",
    "eclipse-temurin": "java",
    ruby: "ruby",
  }),
);

/** Which program of the host an image name stands for, by its full name as that tells its version most cheaply. */
export function hostStandIn(image: string): string | undefined {
  if (image === "host") return undefined;
  try {
    const program = findProgram(hostRuntime(image)?.program ?? "", VISIBLE_PATH);
    return program === undefined ? "host" : `host ${realpathSync(program)}`;
  } catch {
    return "host";
  }
}

/**
 * Which of the host's programs an image name asks for; undefined when the host as it is will do. A tag is taken for
 * a wish, not a promise: the host has one version of each.
 */
export function hostRuntime(image: string): Runtime | undefined {
  if (image === "host") return undefined;
  const name = image.replace(/:[\w.-]+$/, "").replace(/^(docker\.io\/)?(library\/)?/, "");
  const word = WORDS.get(name);
  if (word !== undefined) return RUNTIMES[word];
  throw new AidoError(
    "IMAGE_NOT_FOUND",
    `The local driver runs the host's own programs; it has no image ${image}`,
    {
      hint: `Start Docker to use image ${image}, or name one of: host, ${Object.keys(RUNTIMES).join(", ")}.`,
      details: { image },
    },
  );
}

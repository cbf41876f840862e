import { RUNTIME_IMAGES } from "@aido/sdk/protocol";

export const ALIAS_PREFIX = "@ai-sandbox/";

/** The languages that a sandbox can be asked for by name: the projects' own official images, the small ones. */
export const LANGUAGE_IMAGES: Readonly<Record<string, string>> = {
  ...RUNTIME_IMAGES,
  bun: "oven/bun:1-slim",
  go: "golang:1.24-alpine",
  rust: "rust:1-slim",
  java: "eclipse-temurin:21-jdk-alpine",
  ruby: "ruby:3.4-slim",
};

/** Other words for the same. */
const SYNONYMS: Readonly<Record<string, string>> = {
  javascript: "node",
  typescript: "node",
  shell: "bash",
  golang: "go",
};

/** The image of a language; undefined when there is none of that name. */
export function languageImage(language: string): string | undefined {
  const name = Object.hasOwn(SYNONYMS, language) ? (SYNONYMS[language] ?? language) : language;
  return Object.hasOwn(LANGUAGE_IMAGES, name) ? LANGUAGE_IMAGES[name] : undefined;
}

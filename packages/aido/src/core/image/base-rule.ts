import { AidoError } from "@aido/sdk/protocol";

/** Raises FORBIDDEN for an image that builds may not start from. */
export type BaseRule = (image: string) => void;

/** Patterns with `*` for any text, such as `python:*` or `registry.example/team/*`; without any, every image will do. */
export function baseRule(patterns: readonly string[]): BaseRule {
  if (patterns.length === 0) return () => undefined;
  const tests = patterns.map(toTest);
  return (image) => {
    const full = hasTag(image) ? image : `${image}:latest`;
    if (tests.some((test) => test.test(image) || test.test(full))) return;
    throw new AidoError("FORBIDDEN", `Builds may not start from ${image}`, {
      hint: `Allowed are ${patterns.join(", ")}; the setting images.bases names them.`,
      details: { image },
    });
  };
}

function hasTag(image: string): boolean {
  return image.includes("@") || image.lastIndexOf(":") > image.lastIndexOf("/");
}

function toTest(pattern: string): RegExp {
  const literal = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${pattern.split("*").map(literal).join(".*")}$`, "s");
}

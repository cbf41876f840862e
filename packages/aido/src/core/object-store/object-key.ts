import { AidoError } from "@aido/sdk/protocol";

/** S3's own limit, in bytes. */
const MAX_KEY_BYTES = 1024;
const CONTROL = /\p{Cc}/u;

/** A key means the same thing in every store: segments that are neither empty nor dots, without control characters. */
export function checkKey(key: string): string {
  const segments = key.split("/");
  const isOdd = segments.some((segment) => segment === "" || segment === "." || segment === "..");
  if (isOdd || key.includes("\\") || CONTROL.test(key) || Buffer.byteLength(key) > MAX_KEY_BYTES) {
    throw new AidoError("INVALID_PATH", `${JSON.stringify(key)} cannot be the name of an object`, {
      hint: "Use a relative path such as snapshots/first.tar.gz, of at most 1024 bytes.",
    });
  }
  return key;
}

export function objectNotFound(where: string): AidoError {
  return new AidoError("OBJECT_NOT_FOUND", `There is no object at ${where}`, {
    hint: "It may have been removed by its owner or by a rule of its bucket.",
    details: { url: where },
  });
}

import { AidoError } from "@aido/sdk/protocol";

const CONTROL = /\p{Cc}/u;

/**
 * An address that means one thing only. What a parser would quietly rewrite (dots, backslashes, escapes of a slash) is
 * refused, so that comparing the text of two addresses says whether one lies beneath the other.
 */
export function parseAddress(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || CONTROL.test(address) || address.includes("\\") || address !== address.trim()) {
    throw invalid("This is no address of an object");
  }
  if ((url.protocol === "file:") !== (url.host === ""))
    throw invalid("This address names no place of objects");
  if (url.username !== "" || url.password !== "")
    throw invalid("An address must not hold a user or password");
  if (url.hash !== "") throw invalid("An address must not have a fragment");
  if (url.search !== "" && !isWeb(url)) throw invalid("Only a web address can have a query");
  const path = pathOf(address);
  const isOdd = path.split("/").some((segment) => /^(?:\.|%2e)+$/i.test(segment));
  if (isOdd || /%(?:2f|5c|00|(?![0-9a-f]{2}))/i.test(path) || path.includes("//")) {
    throw invalid("The path of an address must not have dots, empty parts or escaped slashes");
  }
  try {
    decodeURIComponent(url.pathname);
  } catch (cause) {
    throw invalid("The path of an address must be UTF-8", cause);
  }
  return url;
}

/** For messages, evidence and logs: a query may hold a signature that is as good as a password. */
export function printableAddress(address: string): string {
  return address.replace(/[?#].*$/s, "").replace(/\/\/[^/@]*@/, "//");
}

export function isWeb(url: URL): boolean {
  return url.protocol === "http:" || url.protocol === "https:";
}

/** As it was written, before the parser. */
function pathOf(address: string): string {
  return address.replace(/[?#].*$/s, "").replace(/^[^:]*:\/\/[^/]*/, "");
}

function invalid(message: string, cause?: unknown): AidoError {
  return new AidoError("VALIDATION_ERROR", message, {
    hint: "Write it as s3://bucket/path/name or https://host/path/name.",
    details: { field: "destination" },
    cause,
  });
}

import { createHash } from "node:crypto";
import type { ExecBody } from "@aido/sdk/schemas";

/** Of what a request asks for. How its answer is waited for is no part of that, nor is the order of names. */
export function execFingerprint(body: ExecBody): string {
  const { containerId: _sandbox, id: _id, background: _background, autoResume: _wake, ...asked } = body;
  const { env, files, ...rest } = asked;
  const text = JSON.stringify([Object.entries(rest).sort(byName), sorted(env), sorted(files)]);
  return createHash("sha256").update(text).digest("base64url");
}

function sorted(values: Readonly<Record<string, string>> | undefined): [string, string][] {
  return Object.entries(values ?? {}).sort(byName);
}

function byName([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1;
}

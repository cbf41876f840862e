import { AidoError } from "@aido/sdk/protocol";
import type { JobSandbox } from "./job-caller.ts";
import type { HandlerDeps, JobContext } from "./job-handler.ts";

/** The sandbox that a job is about, once its token has been seen to be right. */
export async function findSidecar(
  { tokens }: Pick<HandlerDeps, "tokens">,
  { caller }: JobContext,
  { sidecarUrl, sidecarToken }: { sidecarUrl: string; sidecarToken: string },
): Promise<JobSandbox> {
  const sandbox = await caller.find(toSandboxId(sidecarUrl));
  const token = sidecarToken.trim();
  if (token === "" && caller.isOperator) return sandbox;
  if (token === "") {
    throw new AidoError("MISSING_AUTH", "sidecar_token is required", {
      hint: "Send the token that creating the sandbox answered.",
      details: { sandboxId: sandbox.id },
    });
  }
  if (await tokens.verify(sandbox.id, token)) return sandbox;
  throw new AidoError("FORBIDDEN", "Unauthorized sidecar_token", {
    hint: "Send the token that creating the sandbox answered.",
    details: { sandboxId: sandbox.id },
  });
}

/** The last part of a sidecar's address, whatever host it was reached by; an id stands for itself. */
export function toSandboxId(sidecarUrl: string): string {
  const path = /^https?:\/\//i.test(sidecarUrl.trim()) ? pathOf(sidecarUrl.trim()) : sidecarUrl.trim();
  const id = path.replace(/\/+$/, "").split("/").at(-1) ?? "";
  if (/^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/.test(id)) return id;
  throw new AidoError("VALIDATION_ERROR", `${JSON.stringify(sidecarUrl.slice(0, 100))} names no sandbox`, {
    hint: "Send the sidecarUrl that creating the sandbox answered, or the sandbox's id.",
    details: { field: "sidecarUrl" },
  });
}

function pathOf(url: string): string {
  try {
    return new URL(url).pathname;
  } catch {
    return "";
  }
}

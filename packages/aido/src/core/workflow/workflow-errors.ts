import { AidoError } from "@aido/sdk/protocol";

export function unknownWorkflow(id: number): AidoError {
  return new AidoError("RESOURCE_NOT_FOUND", `Workflow not found: ${id}`, {
    hint: "`aido workflow list` shows those there are.",
    details: { workflowId: id },
  });
}

export function wasCancelled(id: number): AidoError {
  return new AidoError("EXECUTION_CONFLICT", `Workflow ${id} was cancelled`, {
    hint: "Make it again with `aido workflow create`.",
    details: { workflowId: id },
  });
}

export function isAtWork(id: number): AidoError {
  return new AidoError("EXECUTION_CONFLICT", `Workflow ${id} is running already`, {
    hint: `\`aido workflow runs ${id}\` shows how far it is.`,
    details: { workflowId: id },
  });
}

export function idTaken(id: number): AidoError {
  return new AidoError("EXECUTION_CONFLICT", `There is a workflow ${id} already`, {
    details: { workflowId: id },
  });
}

export function tooMany(most: number): AidoError {
  return new AidoError("QUOTA_EXCEEDED", `There are ${most} workflows, which is all there may be`, {
    hint: "Cancel some with `aido workflow cancel`.",
    details: { limit: most },
  });
}

export const LOST = {
  code: "CONTAINER_LOST",
  message: "Its server ended before it did; it is not run again by itself",
} as const;

export const MISSED = { code: "EXECUTION_TIMEOUT", message: "No server ran at its time" } as const;
export const OVERLAPPED = { code: "EXECUTION_CONFLICT", message: "The run before still went on" } as const;
export const STOPPED = { code: "CANCELLED", message: "It was ended before it was done" } as const;

import { randomUUID } from "node:crypto";

const REQUEST_ID = /^[A-Za-z0-9_.-]{1,64}$/;

/** The client's own when it has chosen a usable one. */
export function requestIdOf(given: string | undefined): string {
  return given !== undefined && REQUEST_ID.test(given) ? given : randomUUID();
}

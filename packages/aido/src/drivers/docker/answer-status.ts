export const NOT_MODIFIED = 304;
export const NOT_FOUND = 404;
export const CONFLICT = 409;

/** The HTTP status of the engine's answer; undefined when it did not answer. */
export function statusOf(thrown: unknown): number | undefined {
  const status = (thrown as { statusCode?: unknown } | undefined)?.statusCode;
  return typeof status === "number" ? status : undefined;
}

/** For answers that say that there is nothing to do. */
export function ignoring(status: number): (thrown: unknown) => undefined {
  return (thrown) => {
    if (statusOf(thrown) !== status) throw thrown;
  };
}

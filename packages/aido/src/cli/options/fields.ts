import { AidoError } from "@aido/sdk/protocol";

/** `command=ls`; a name that comes again makes a list, and `template_request.image=x` is a field within a field. */
export function parseFields(pairs: readonly string[]): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    if (at < 1) {
      throw new AidoError("VALIDATION_ERROR", `"${pair}" is not a field of the request`, {
        hint: "Write fields as name=value, such as command='ls -l'.",
      });
    }
    set(fields, pair.slice(0, at).split("."), pair.slice(at + 1));
  }
  return fields;
}

function set(fields: Record<string, unknown>, [name = "", ...rest]: readonly string[], value: string): void {
  const known = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (rest.length > 0) {
    const inner = typeof known === "object" && known !== null ? (known as Record<string, unknown>) : {};
    set(inner, rest, value);
    define(fields, name, inner);
  } else if (known === undefined) define(fields, name, value);
  else define(fields, name, [known, value].flat());
}

/** Also a field called `__proto__` is only a field. */
function define(fields: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(fields, name, { value, enumerable: true, configurable: true, writable: true });
}

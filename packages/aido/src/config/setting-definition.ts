import type { ValueKind } from "./value-kinds.ts";

export interface SettingDefinition<T> {
  readonly kind: ValueKind<Exclude<T, undefined>>;
  readonly default: T;
  readonly description: string;
  /** Variables besides the mechanical `AIDO_…`, weaker than it, the strongest last; each may be written in its own way. */
  readonly variables?: Readonly<Record<string, ValueKind<Exclude<T, undefined>>>>;
}

import { inspect } from "node:util";

/** A value that must not be printed by accident; `reveal` is the one way to it. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return "[hidden]";
  }

  toJSON(): string {
    return "[hidden]";
  }

  [inspect.custom](): string {
    return "[hidden]";
  }
}

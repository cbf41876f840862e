import type { Answer, IdempotencyStore, KeptAnswer, KeyedRequest } from "../../core/access/idempotency.ts";

export class MemoryIdempotency implements IdempotencyStore {
  readonly #kept = new Map<string, KeptAnswer>();

  async begin(request: KeyedRequest, replacing?: KeyedRequest): Promise<KeptAnswer | undefined> {
    if (replacing !== undefined) await this.abandon(replacing);
    const known = this.#kept.get(nameOf(request));
    if (known !== undefined) return structuredClone(known);
    this.#kept.set(nameOf(request), { ...structuredClone(request), answer: undefined });
    return undefined;
  }

  async finish(request: KeyedRequest, answer: Answer): Promise<boolean> {
    const own = this.#unanswered(request);
    if (own === undefined) return false;
    own.answer = { ...answer };
    return true;
  }

  async abandon(request: KeyedRequest): Promise<void> {
    if (this.#unanswered(request) !== undefined) this.#kept.delete(nameOf(request));
  }

  async prune(before: Date): Promise<void> {
    for (const [name, { at }] of this.#kept) if (at < before) this.#kept.delete(name);
  }

  #unanswered(request: KeyedRequest): KeptAnswer | undefined {
    const known = this.#kept.get(nameOf(request));
    const isOwn = known?.holder === request.holder && known.at.getTime() === request.at.getTime();
    return isOwn && known.answer === undefined ? known : undefined;
  }
}

function nameOf({ owner, key }: KeyedRequest): string {
  return JSON.stringify([owner, key]);
}

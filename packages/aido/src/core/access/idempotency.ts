/** The answer to a request that carried a key, kept so that sending it again does nothing more. */
export interface KeptAnswer {
  /** SHA-256 of what was asked; the same key with another request is refused. */
  fingerprint: string;
  /** Undefined while the first request is still at work. */
  answer: { status: number; body: string } | undefined;
  at: Date;
}

export interface IdempotencyStore {
  /** Undefined when the key is now ours to answer; otherwise what is known of it. */
  begin(owner: string, key: string, fingerprint: string, at: Date): Promise<KeptAnswer | undefined>;
  finish(owner: string, key: string, answer: { status: number; body: string }): Promise<void>;
  /** The request failed without effect: the key may be used again. */
  abandon(owner: string, key: string): Promise<void>;
  /** Forgets keys older than this. */
  prune(before: Date): Promise<void>;
}

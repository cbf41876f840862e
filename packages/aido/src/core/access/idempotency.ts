export interface Answer {
  status: number;
  body: string;
}

/** A request that carries a key, and who is at it. */
export interface KeyedRequest {
  owner: string;
  key: string;
  /** SHA-256 of what was asked; the same key with another request is refused. */
  fingerprint: string;
  /** Names the process; see core/process-identity.ts. */
  holder: string;
  at: Date;
}

/** The answer to a request that carried a key, kept so that sending it again does nothing more. */
export interface KeptAnswer extends KeyedRequest {
  /** Undefined while the first request is still at work. */
  answer: Answer | undefined;
}

export interface IdempotencyStore {
  /**
   * Undefined when the key is now this request's to answer; otherwise what stands in the way. That is not the `replacing`
   * one as long as nobody has answered or replaced it: of several who find it left behind, one gets the key.
   */
  begin(request: KeyedRequest, replacing?: KeyedRequest): Promise<KeptAnswer | undefined>;
  /** Only of the request that has the key; false when it has lost it. */
  finish(request: KeyedRequest, answer: Answer): Promise<boolean>;
  /** The request failed without effect: the key may be used again. Only of the request that has the key. */
  abandon(request: KeyedRequest): Promise<void>;
  /** Forgets keys older than this. */
  prune(before: Date): Promise<void>;
}

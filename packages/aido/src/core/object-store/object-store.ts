export interface ObjectInfo {
  readonly bytes: number;
}

/** What `put` has stored. */
export interface StoredObject extends ObjectInfo {
  /** Of the bytes that were handed over, in hex. */
  readonly sha256: string;
}

export interface ObjectOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface GetOptions extends ObjectOptions {
  /** The reader is done with each chunk before it asks for the next, whose memory may be the same. */
  readonly isTransient?: boolean | undefined;
}

/** Where large things lie that outlive their sandbox. A key is a relative path: see `checkKey`. */
export interface ObjectStore {
  /**
   * All or nothing: until it resolves the key holds what it held before, and a body that breaks off changes nothing.
   * The body is taken as fast as it can be stored and never collected in memory. A chunk of it is valid until the next is
   * asked for.
   */
  put(key: string, body: AsyncIterable<Uint8Array>, options?: ObjectOptions): Promise<StoredObject>;
  /** Raises OBJECT_NOT_FOUND before the first byte. A stream that ends early raises; it never just ends. */
  get(key: string, options?: GetOptions): Promise<AsyncIterable<Uint8Array>>;
  /** Undefined when there is none. */
  head(key: string, options?: ObjectOptions): Promise<ObjectInfo | undefined>;
  /** With all that was made to hold it. Idempotent: removing what is not there succeeds. */
  remove(key: string, options?: ObjectOptions): Promise<void>;
}

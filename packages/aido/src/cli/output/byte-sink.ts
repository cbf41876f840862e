/** Where bytes go, in order. A promise settles when the reader has taken them: that is the back-pressure. */
export interface ByteSink {
  /** Rejects with code EPIPE when the reader is gone. */
  write(data: Uint8Array | string): Promise<void>;
  readonly isTerminal: boolean;
  /** Width of the terminal; undefined when it is none. */
  readonly columns: number | undefined;
}

export function isBrokenPipe(thrown: unknown): boolean {
  return thrown instanceof Error && "code" in thrown && (thrown.code === "EPIPE" || thrown.code === "EIO");
}

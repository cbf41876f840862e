/** Time as core sees it. Tests use a clock they can move by hand. */
export interface Clock {
  now(): Date;
  /** Rejects with the signal's reason when it is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

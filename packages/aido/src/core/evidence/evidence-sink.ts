/**
 * Where core tells what happened. Appending never fails the operation it describes; what a full disk does not take is
 * logged, kept and written later.
 */
export interface EvidenceSink {
  append(
    sandboxId: string,
    event: string,
    detail?: Readonly<Record<string, unknown>>,
    actor?: string,
  ): Promise<void>;
  /** Within some milliseconds, in order with everything else that is told; for what is on the way of every command. */
  appendSoon(sandboxId: string, event: string, detail: Readonly<Record<string, unknown>>): void;
}

/** Where evidence goes when its sandbox's directory goes. */
export interface EvidenceArchive {
  /** Moves the log out of the sandbox's directory; later entries follow it. Idempotent. */
  archive(sandboxId: string): Promise<void>;
}

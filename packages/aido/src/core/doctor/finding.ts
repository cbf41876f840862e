/** One thing that was looked at, and what to do about it. */
export interface Finding {
  readonly name: string;
  readonly status: "ok" | "warning" | "failed";
  readonly message: string;
  /** The next thing to type. */
  readonly hint?: string | undefined;
}

export const ok = (name: string, message: string): Finding => ({ name, status: "ok", message });

export const warning = (name: string, message: string, hint?: string): Finding => ({
  name,
  status: "warning",
  message,
  hint,
});

export const failed = (name: string, message: string, hint?: string): Finding => ({
  name,
  status: "failed",
  message,
  hint,
});

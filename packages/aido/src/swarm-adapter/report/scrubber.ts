/** Shorter values are words rather than secrets; hiding them would make every text unreadable. */
const LEAST_CHARS = 6;
const HIDDEN = "***";

/** Takes secrets out of all that leaves the adapter, whoever said them. */
export class Scrubber {
  #secrets: readonly string[] = [];

  add(...values: readonly (string | undefined)[]): void {
    const secrets = new Set(this.#secrets);
    for (const value of values) {
      if (value === undefined || value.length < LEAST_CHARS) continue;
      for (const form of formsOf(value)) secrets.add(form);
    }
    // The longest first, so that one that holds another goes as a whole.
    this.#secrets = [...secrets].sort((a, b) => b.length - a.length);
  }

  scrub(text: string): string {
    return this.#secrets.reduce((left, secret) => left.split(secret).join(HIDDEN), text);
  }

  /**
   * For text that comes in pieces: what can be told now, and the end that must wait for the next piece because a
   * secret may have begun in it.
   */
  scrubPiece(text: string): { ready: string; held: string } {
    const clean = this.scrub(text);
    let held = 0;
    for (const secret of this.#secrets) {
      for (let length = Math.min(secret.length - 1, clean.length); length > held; length -= 1) {
        if (clean.endsWith(secret.slice(0, length))) held = length;
      }
    }
    const end = clean.length - held;
    return { ready: clean.slice(0, end), held: clean.slice(end) };
  }
}

/** As it is, and as addresses and headers carry it. */
function formsOf(value: string): readonly string[] {
  const base64 = Buffer.from(value).toString("base64").replace(/=+$/, "");
  return [value, encodeURIComponent(value), base64, JSON.stringify(value).slice(1, -1)];
}

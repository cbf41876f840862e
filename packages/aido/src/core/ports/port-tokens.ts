import { createHmac, timingSafeEqual } from "node:crypto";

/** Letters and digits of one case: a token is also part of a host name. */
const LETTERS = "abcdefghijklmnopqrstuvwxyz234567";
const TOKEN_BYTES = 16;
export const TOKEN = /^[a-z2-7]{26}$/;

/** Who knows a port's token may use the port. Made from the server's secret, so a restart keeps them and nothing is stored. */
export class PortTokens {
  readonly #secret: Uint8Array;

  constructor(secret: Uint8Array) {
    this.#secret = secret;
  }

  issue(sandboxId: string, port: number): string {
    const mac = createHmac("sha256", this.#secret).update(`port\n${sandboxId}\n${port}`).digest();
    return toLetters(mac.subarray(0, TOKEN_BYTES));
  }

  isValid(sandboxId: string, port: number, token: string): boolean {
    if (!TOKEN.test(token)) return false;
    return timingSafeEqual(Buffer.from(this.issue(sandboxId, port)), Buffer.from(token));
  }
}

/** Five bits a letter. */
function toLetters(bytes: Uint8Array): string {
  let text = "";
  let held = 0;
  let bits = 0;
  for (const byte of bytes) {
    held = (held << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += LETTERS[(held >> bits) & 31];
    }
    held &= 255;
  }
  return bits === 0 ? text : text + LETTERS[(held << (5 - bits)) & 31];
}

export interface PublicAddressOptions {
  /** The whole of it, as a proxy in front of the server has it. */
  url?: string | undefined;
  host: string;
  port: number;
}

/** Where callers reach the server. Its port is certain only once it listens. */
export class PublicAddress {
  readonly #options: PublicAddressOptions;
  #port: number;

  constructor(options: PublicAddressOptions) {
    this.#options = options;
    this.#port = options.port;
  }

  /** The server was given a port. */
  listensOn(port: number): void {
    this.#port = port;
  }

  get base(): string {
    const { url, host } = this.#options;
    if (url !== undefined) return url.replace(/\/+$/, "");
    return `http://${host.includes(":") ? `[${host}]` : host}:${this.#port}`;
  }

  sidecar(sandboxId: string): string {
    return `${this.base}/sidecar/${sandboxId}`;
  }
}

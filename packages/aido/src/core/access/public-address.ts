export interface PublicAddressOptions {
  /** The whole of it, as a proxy in front of the server has it. */
  url?: string | undefined;
  host: string;
  port: number;
}

/** Ports that lead to one sandbox's sidecar API and to nothing else. */
export interface OwnPorts {
  /** Resolves when the sandbox has its port, or cannot be given one. */
  open(sandboxId: string): Promise<void>;
  portOf(sandboxId: string): number | undefined;
}

/** Where callers reach the server. Its ports are certain only once it listens. */
export class PublicAddress {
  readonly #options: PublicAddressOptions;
  #port: number;
  #ownPorts: OwnPorts | undefined;

  constructor(options: PublicAddressOptions) {
    this.#options = options;
    this.#port = options.port;
  }

  /** The server was given a port. */
  listensOn(port: number): void {
    this.#port = port;
  }

  useOwnPorts(ports: OwnPorts): void {
    this.#ownPorts = ports;
  }

  /** Before a sandbox's address is told for the first time. */
  async prepare(sandboxId: string): Promise<void> {
    await this.#ownPorts?.open(sandboxId);
  }

  get base(): string {
    return this.#options.url?.replace(/\/+$/, "") ?? this.#at(this.#port);
  }

  /** Ends with the sandbox's id whatever comes before it, so that the sandbox is found by its address. */
  sidecar(sandboxId: string): string {
    const own = this.#ownPorts?.portOf(sandboxId);
    return `${own === undefined ? this.base : this.#at(own)}/sidecar/${sandboxId}`;
  }

  #at(port: number): string {
    const { host } = this.#options;
    return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  }
}

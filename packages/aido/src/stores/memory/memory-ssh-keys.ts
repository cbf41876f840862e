import { AidoError } from "@aido/sdk/protocol";
import type { SshKeyName, SshKeyRecord, SshKeyStore } from "../../core/ssh/ssh-key-store.ts";

export class MemorySshKeys implements SshKeyStore {
  #records: SshKeyRecord[] = [];
  readonly #exists: (sandboxId: string) => boolean;

  constructor(exists: (sandboxId: string) => boolean) {
    this.#exists = exists;
  }

  async add(record: SshKeyRecord): Promise<SshKeyRecord> {
    if (!this.#exists(record.sandboxId)) {
      throw new AidoError("CONTAINER_NOT_FOUND", `Sandbox ${record.sandboxId} does not exist`);
    }
    if (!this.#records.some(isNamed(record))) this.#records.push(structuredClone(record));
    return (await this.get(record)) ?? record;
  }

  async get(name: SshKeyName): Promise<SshKeyRecord | undefined> {
    return structuredClone(this.#records.find(isNamed(name)));
  }

  async remove(name: SshKeyName): Promise<boolean> {
    const before = this.#records.length;
    this.#records = this.#records.filter((record) => !isNamed(name)(record));
    return this.#records.length < before;
  }

  async list(sandboxId: string): Promise<readonly SshKeyRecord[]> {
    return structuredClone(this.#records.filter((record) => record.sandboxId === sandboxId));
  }

  async removeAll(sandboxId: string): Promise<void> {
    this.drop(sandboxId);
  }

  drop(sandboxId: string): void {
    this.#records = this.#records.filter((record) => record.sandboxId !== sandboxId);
  }
}

function isNamed(name: SshKeyName): (record: SshKeyRecord) => boolean {
  return ({ sandboxId, username, fingerprint }) =>
    sandboxId === name.sandboxId && username === name.username && fingerprint === name.fingerprint;
}

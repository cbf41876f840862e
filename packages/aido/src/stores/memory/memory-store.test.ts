import { storeContract } from "../../../test/contract/store-contract.ts";
import { MemoryStore } from "./memory-store.ts";

storeContract("memory", async () => ({
  store: new MemoryStore(),
  async [Symbol.asyncDispose]() {},
}));

import { storeContract } from "../../../test/contract/store-contract.ts";
import { storeIdempotencyContract } from "../../../test/contract/store-idempotency-contract.ts";
import { MemoryStore } from "./memory-store.ts";

const open = async () => ({
  store: new MemoryStore(),
  async [Symbol.asyncDispose]() {},
});

storeContract("memory", open);
storeIdempotencyContract("memory", open);

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DriverBackend } from "../../../test/contract/driver-backend.ts";
import { driverContract } from "../../../test/contract/driver-contract.ts";
import { FakeDriver } from "./fake-driver.ts";

/** The fake stands in for real drivers in unit tests, so it keeps the promises that they keep. */
async function make(): Promise<DriverBackend> {
  const directory = await mkdtemp(join(tmpdir(), "aido-fake-"));
  const drivers: FakeDriver[] = [];
  const open = async () => {
    const driver = new FakeDriver();
    drivers.push(driver);
    return driver;
  };
  const driver = await open();
  return {
    driver,
    image: "any",
    directory,
    reopen: open,
    otherScope: open,
    [Symbol.asyncDispose]: async () => {
      for (const each of drivers) await each.close();
      await rm(directory, { recursive: true });
    },
  };
}

driverContract("the fake", { make, hello: ["echo", "hello"], isolates: false });

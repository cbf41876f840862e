import { describe } from "vitest";
import type { DriverSuite } from "./driver-backend.ts";
import { commitContract } from "./driver-commit.ts";
import { connectionContract } from "./driver-connection.ts";
import { imagesContract } from "./driver-images.ts";
import { isolationContract } from "./driver-isolation.ts";
import { lifeContract } from "./driver-life.ts";
import { limitsContract } from "./driver-limits.ts";

/** What every driver does, whatever it runs sandboxes on. Each backend's own test file calls it. */
export function driverContract(name: string, suite: DriverSuite): void {
  describe(`driver contract on ${name}`, () => {
    describe("life", () => lifeContract(suite));
    describe("commit", () => commitContract(suite));
    describe("connection", () => connectionContract(suite));
    describe("images", () => imagesContract(suite));
    if (suite.isolates) {
      describe("isolation", () => isolationContract(suite));
      describe("limits", () => limitsContract(suite));
    }
  });
}

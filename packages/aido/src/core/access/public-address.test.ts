import { expect, test } from "vitest";
import { PublicAddress } from "./public-address.ts";

test("S2-106 an address is made of the public host and the port that the server was given", () => {
  const address = new PublicAddress({ host: "sandboxes.example", port: 0 });
  address.listensOn(4711);
  expect(address.sidecar("sandbox-1")).toBe("http://sandboxes.example:4711/sidecar/sandbox-1");
});

test("a whole address is used as it is, and an IPv6 host has brackets", () => {
  const given = new PublicAddress({ url: "https://aido.example/base/", host: "127.0.0.1", port: 1 });
  given.listensOn(2);
  expect(given.sidecar("a")).toBe("https://aido.example/base/sidecar/a");
  expect(new PublicAddress({ host: "::1", port: 3 }).base).toBe("http://[::1]:3");
});

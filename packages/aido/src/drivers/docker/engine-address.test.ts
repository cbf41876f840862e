import { isAidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { toEngineAddress } from "./engine-address.ts";

test("a socket is local, whatever DOCKER_HOST of the environment says", () => {
  for (const host of ["unix:///tmp/x.sock", "/tmp/x.sock"]) {
    const address = toEngineAddress(host, undefined);
    expect(address).toMatchObject({
      text: "unix:///tmp/x.sock",
      local: true,
      options: { socketPath: "/tmp/x.sock" },
    });
    expect(address.options.host).toBeUndefined();
    expect("host" in address.options).toBe(true);
  }
});

test.each([
  ["tcp://10.0.0.1:2375", { host: "10.0.0.1", port: 2375, protocol: "http" }],
  ["10.0.0.1:2375", { host: "10.0.0.1", port: 2375, protocol: "http" }],
  ["tcp://engine:2376", { host: "engine", port: 2376, protocol: "https" }],
  ["https://engine", { host: "engine", port: 2376, protocol: "https" }],
  ["ssh://me@engine", { host: "engine", port: 22, protocol: "ssh", username: "me" }],
])("%s is another machine's", (host, options) => {
  expect(toEngineAddress(host, undefined)).toMatchObject({ text: host, local: false, options });
});

test.each(["ftp://engine", "tcp://", "://"])("%s is refused", (host) => {
  expect(() => toEngineAddress(host, undefined)).toThrow(
    expect.toSatisfy((error: unknown) => isAidoError(error, "INVALID_CONFIG")),
  );
});

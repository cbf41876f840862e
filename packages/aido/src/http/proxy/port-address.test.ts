import { describe, expect, test } from "vitest";
import { portHost, portPath, readPortAddress } from "./port-address.ts";

const TOKEN = "abcdefghijklmnopqrstuvwxyz";

const read = (url: string, host = "127.0.0.1:3000") => readPortAddress({ url, headers: { host } });

describe("the address of a port", () => {
  test("by path is read back from what it was made of", () => {
    const path = portPath("My.box_1", 8080, TOKEN);
    const prefix = path.slice(0, -1);
    const known = { sandboxId: "My.box_1", port: 8080, token: TOKEN, prefix };
    expect(read(`${path}a/b?c=d`)).toEqual({ ...known, target: "/a/b?c=d" });
    expect(read(prefix)).toEqual({ ...known, target: "" });
    expect(read(`${prefix}?q`)).toEqual({ ...known, target: "?q" });
  });

  test("by host is read back whatever the case, and the path belongs to the sandbox", () => {
    const host = portHost("k3x9a0bc", 80, TOKEN, "127.0.0.1:3000");
    expect(host).toBe(`80-k3x9a0bc-${TOKEN}.localhost:3000`);
    const address = { sandboxId: "k3x9a0bc", port: 80, token: TOKEN, prefix: "", target: "/api/sandbox" };
    expect(read("/api/sandbox", host)).toEqual(address);
    expect(read("/api/sandbox", host?.toUpperCase())).toEqual(address);
  });

  test.each([
    ["127.0.0.1", "localhost"],
    ["[::1]:3000", "localhost:3000"],
    ["localhost:80", "localhost:80"],
    ["Boxes.example.org", "boxes.example.org"],
  ])("below the server's own name %s", (server, base) => {
    expect(portHost("box", 1, TOKEN, server)).toBe(`1-box-${TOKEN}.${base}`);
  });

  test.each(["My.box", "UPPER", "a_b", "-a", "a".repeat(31)])(
    "has no host name when the id %s does not fit in one",
    (id) => {
      expect(portHost(id, 1, TOKEN, "localhost")).toBeUndefined();
    },
  );

  test.each([
    "/",
    "/p/box/80",
    `/p/box/80/${TOKEN.slice(1)}/`,
    `/p/box/80/${TOKEN}x/`,
    `/p/../80/${TOKEN}`.replace("..", "a%2fb"),
    `http://elsewhere/p/box/80/${TOKEN}/`,
    "*",
  ])("is not %s", (url) => {
    expect(read(url)).toBeUndefined();
  });
});

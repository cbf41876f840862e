import { expect, test } from "vitest";
import { Secret } from "../config/secret.ts";
import { openJwt } from "./open-jwt.ts";

const NONE = { jwtSecret: undefined, jwksUrl: undefined, jwtIssuer: undefined, jwtAudience: undefined };

test("a secret that can be found by trying is refused, and not shown", () => {
  const open = (secret: string) => openJwt({ ...NONE, jwtSecret: new Secret(secret) });
  const short = "x".repeat(31);
  expect(() => open(short)).toThrow(expect.objectContaining({ code: "INVALID_CONFIG" }));
  expect(() => open(short)).not.toThrow(short);
  expect(open("x".repeat(32))).toBeDefined();
});

test("without secret and keys no token is accepted", () => {
  expect(openJwt(NONE)).toBeUndefined();
  expect(openJwt({ ...NONE, jwksUrl: "https://issuer.example/keys" })).toBeDefined();
});

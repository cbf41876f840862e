import { describe, expect, test } from "vitest";
import { parseLoginName, toLoginName } from "./login-name.ts";
import { parsePublicKey } from "./public-key.ts";

const field = (bytes: Buffer | string): Buffer => {
  const body = Buffer.from(bytes as string);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length);
  return Buffer.concat([length, body]);
};
const line = (type: string, ...fields: (Buffer | string)[]): string =>
  `${type} ${Buffer.concat([field(type), ...fields.map(field)]).toString("base64")}`;
const ED25519 = line("ssh-ed25519", Buffer.alloc(32, 7));
const EXPONENT = Buffer.from([1, 0, 1]);
const modulus = (bytes: number) => Buffer.concat([Buffer.from([0]), Buffer.alloc(bytes, 0xff)]);

describe("public keys", () => {
  test("S2-103 keys of every strong type are taken, with their fingerprint and comment", () => {
    expect(parsePublicKey(` ${ED25519} me@laptop \n`)).toEqual({
      type: "ssh-ed25519",
      fingerprint: expect.stringMatching(/^SHA256:[A-Za-z0-9+/]{43}$/),
      line: ED25519,
      comment: "me@laptop",
    });
    const point = (bytes: number) => Buffer.concat([Buffer.from([4]), Buffer.alloc(bytes - 1, 1)]);
    for (const good of [
      line("ecdsa-sha2-nistp256", "nistp256", point(65)),
      line("ecdsa-sha2-nistp384", "nistp384", point(97)),
      line("ecdsa-sha2-nistp521", "nistp521", point(133)),
      line("ssh-rsa", EXPONENT, modulus(256)),
      line("ssh-rsa", EXPONENT, modulus(2048)),
    ]) {
      expect(parsePublicKey(good).line).toBe(good);
    }
  });

  test.each([
    ["nothing", "  "],
    ["options", `command="id" ${ED25519}`],
    ["an address", `from="10.0.0.1" ${ED25519}`],
    ["no-pty", `no-pty ${ED25519}`],
    ["two lines", `${ED25519}\n${ED25519}`],
    ["a carriage return", `${ED25519}\r${ED25519}`],
    ["a NUL", `${ED25519} a\0b`],
    ["an escape in the comment", `${ED25519} \u001b[2J`],
    ["a weak type", line("ssh-dss", "x")],
    ["a certificate", ED25519.replace("ssh-ed25519 ", "ssh-ed25519-cert-v01@openssh.com ")],
    ["another type inside", ED25519.replace("ssh-ed25519", "ssh-rsa")],
    ["a short key", line("ssh-ed25519", Buffer.alloc(31))],
    ["more than a key", line("ssh-ed25519", Buffer.alloc(32), "more")],
    ["a length beyond the end", `ssh-ed25519 ${Buffer.from([0, 0, 1, 0, 1]).toString("base64")}`],
    ["a huge length", `ssh-ed25519 ${Buffer.from([255, 255, 255, 255]).toString("base64")}`],
    ["what is no base64", `${ED25519.slice(0, -2)}!!`],
    ["base64 that was cut off", ED25519.slice(0, -3)],
    ["RSA of 1024 bits", line("ssh-rsa", EXPONENT, modulus(128))],
    ["RSA of 2047 bits", line("ssh-rsa", EXPONENT, Buffer.alloc(256, 0x7f))],
    ["RSA of 32768 bits", line("ssh-rsa", EXPONENT, modulus(4096))],
    ["RSA with an even exponent", line("ssh-rsa", Buffer.from([2]), modulus(256))],
    ["RSA with exponent 1", line("ssh-rsa", Buffer.from([1]), modulus(256))],
    ["a negative modulus", line("ssh-rsa", EXPONENT, Buffer.alloc(256, 0xff))],
    ["another curve inside", line("ecdsa-sha2-nistp256", "nistp384", Buffer.alloc(65, 4))],
    ["a compressed point", line("ecdsa-sha2-nistp256", "nistp256", Buffer.alloc(33, 2))],
    ["a private key", "-----BEGIN OPENSSH PRIVATE KEY-----"],
    ["a very long line", `${ED25519} ${"x".repeat(20_000)}`],
    ["a long comment", `${ED25519} ${"x".repeat(300)}`],
  ])("S2-103 refuses %s", (_, text) => {
    expect(() => parsePublicKey(text)).toThrow(expect.objectContaining({ code: "VALIDATION_ERROR" }));
  });
});

describe("login names", () => {
  test("name a sandbox, or a user and a sandbox; a user may have dots", () => {
    expect(parseLoginName("k3x9a0bc")).toEqual({ username: "", sandboxId: "k3x9a0bc" });
    expect(parseLoginName("a.b.sandbox-1")).toEqual({ username: "a.b", sandboxId: "sandbox-1" });
    for (const bad of [
      "",
      ".",
      ".x",
      "x.",
      "a/b",
      "a b",
      "../x",
      `${"u".repeat(33)}.x`,
      "x".repeat(65),
      "a\0",
    ]) {
      expect(parseLoginName(bad), bad).toBeUndefined();
    }
    expect(toLoginName({ sandboxId: "x", username: "root" })).toBe("root.x");
    expect(toLoginName({ sandboxId: "x", username: "" })).toBe("x");
  });
});

import { createHmac, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { JwtVerifier } from "./jwt-verifier.ts";

const SECRET = "a secret of the operator";
const NOW = 1_800_000_000;
const now = () => NOW * 1000;
const GOOD = { sub: "ada", exp: NOW + 60, iss: "https://issuer", aud: "aido" };

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
const refusal = { code: "INVALID_API_KEY" };

function hs256(claims: object, secret: string | Buffer = SECRET, header: object = { alg: "HS256" }): string {
  const signed = `${part(header)}.${part(claims)}`;
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
}

function signedBy(key: KeyObject, header: { alg: string; kid: string }, claims: object = GOOD): string {
  const signed = `${part(header)}.${part(claims)}`;
  const options = header.alg === "ES256" ? { key, dsaEncoding: "ieee-p1363" as const } : key;
  return `${signed}.${sign("sha256", Buffer.from(signed), options).toString("base64url")}`;
}

/** An issuer that publishes its keys on a real server. */
async function issuer() {
  let keys: object[] = [];
  let asked = 0;
  let status = 200;
  const server = createServer((_, response) => {
    asked += 1;
    response.writeHead(status).end(JSON.stringify({ keys }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`,
    publish: (...published: object[]) => {
      keys = published;
    },
    fail: (code: number) => {
      status = code;
    },
    get asked() {
      return asked;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const jwk = (key: KeyObject, kid: string) => ({ ...key.export({ format: "jwk" }), kid, use: "sig" });
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });

describe("tokens signed with a shared secret", () => {
  const verifier = new JwtVerifier({ secret: SECRET, issuer: "https://issuer", audience: "aido", now });

  test("S3-9 a good one names who asks and what they may do", async () => {
    expect(await verifier.verify(hs256(GOOD))).toEqual({
      owner: "jwt:ada",
      name: "ada",
      scopes: ["read", "write"],
    });
    const claims = { ...GOOD, name: "Ada", scope: "openid aido:read", aud: ["other", "aido"] };
    expect(await verifier.verify(hs256(claims))).toEqual({ owner: "jwt:ada", name: "Ada", scopes: ["read"] });
  });

  test.each<[string, string]>([
    ["another secret", hs256(GOOD, "guess")],
    ["an empty secret", hs256(GOOD, "")],
    ["no signature", `${part({ alg: "HS256" })}.${part(GOOD)}.`],
    ["the algorithm none", `${part({ alg: "none" })}.${part(GOOD)}.`],
    ["none in other letters", `${part({ alg: "NoNe" })}.${part(GOOD)}.`],
    ["no algorithm", hs256(GOOD, SECRET, {})],
    ["a longer hash", hs256(GOOD, SECRET, { alg: "HS512" })],
    ["an expiry that is over", hs256({ ...GOOD, exp: NOW - 31 })],
    ["no expiry", hs256({ ...GOOD, exp: undefined })],
    ["an expiry in words", hs256({ ...GOOD, exp: "never" })],
    ["a beginning that is to come", hs256({ ...GOOD, nbf: NOW + 31 })],
    ["another issuer", hs256({ ...GOOD, iss: "https://other" })],
    ["another audience", hs256({ ...GOOD, aud: "other" })],
    ["no audience", hs256({ ...GOOD, aud: undefined })],
    ["no subject", hs256({ ...GOOD, sub: "" })],
    ["a changed body", hs256(GOOD).replace(/\.[^.]+\./, `.${part({ ...GOOD, sub: "eve" })}.`)],
    ["what it says must be understood", hs256(GOOD, SECRET, { alg: "HS256", crit: ["b64"], b64: false })],
    ["a fourth part", `${hs256(GOOD)}.YQ`],
    ["bytes that are no JSON", "YQ.YQ.YQ"],
    ["endless bytes", `${part({ alg: "HS256" })}.${"a".repeat(9000)}.YQ`],
  ])("one with %s is refused", async (_, token) => {
    await expect(verifier.verify(token)).rejects.toMatchObject(refusal);
  });

  test("clocks may differ a little", async () => {
    await expect(verifier.verify(hs256({ ...GOOD, exp: NOW - 20, nbf: NOW + 20 }))).resolves.toBeDefined();
  });

  test.each<[string, unknown, readonly string[]]>([
    ["a list", ["aido:read", "openid"], ["read"]],
    ["an empty list", [], []],
    ["an empty text", "", []],
    ["null", null, []],
    ["an object", { admin: true }, []],
    ["a list with a list in it", [["admin"], 1], []],
  ])("scopes given as %s say what may be done, and nothing more", async (_, scope, scopes) => {
    expect((await verifier.verify(hs256({ ...GOOD, scope }))).scopes).toEqual(scopes);
  });

  test("the scope admin is never implied", async () => {
    const { scopes } = await verifier.verify(hs256({ ...GOOD, scope: "administrator Admin aido:write" }));
    expect(scopes).toEqual(["write"]);
  });
});

describe("tokens signed by a published key", () => {
  test("RS256 and ES256 are checked with the key they name", async () => {
    await using at = await issuer();
    at.publish(jwk(rsa.publicKey, "r"), jwk(ec.publicKey, "e"), { kty: "oct", k: "AAAA", kid: "o" });
    const verifier = new JwtVerifier({ jwksUrl: at.url, now });
    await expect(
      verifier.verify(signedBy(rsa.privateKey, { alg: "RS256", kid: "r" })),
    ).resolves.toBeDefined();
    await expect(verifier.verify(signedBy(ec.privateKey, { alg: "ES256", kid: "e" }))).resolves.toBeDefined();
    expect(at.asked).toBe(1);
    const other = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const wrong = [
      signedBy(other.privateKey, { alg: "RS256", kid: "r" }),
      signedBy(ec.privateKey, { alg: "ES256", kid: "r" }),
      signedBy(rsa.privateKey, { alg: "RS256", kid: "e" }),
      signedBy(rsa.privateKey, { alg: "PS256", kid: "r" }),
    ];
    for (const token of wrong) await expect(verifier.verify(token)).rejects.toMatchObject(refusal);
  });

  test("a public key is no secret: a token cannot choose to be checked with it as one", async () => {
    await using at = await issuer();
    at.publish(jwk(rsa.publicKey, "r"));
    for (const secret of [undefined, SECRET]) {
      const verifier = new JwtVerifier({ jwksUrl: at.url, secret, now });
      for (const format of ["pem", "der"] as const) {
        const exported = rsa.publicKey.export({ type: "spki", format: format as "pem" });
        const token = hs256(GOOD, exported, { alg: "HS256", kid: "r" });
        await expect(verifier.verify(token)).rejects.toMatchObject(refusal);
      }
    }
  });

  test("a key that is published later is found, and a withdrawn one is no longer good", async () => {
    await using at = await issuer();
    let time = now();
    const verifier = new JwtVerifier({ jwksUrl: at.url, now: () => time });
    at.publish(jwk(rsa.publicKey, "old"));
    const old = signedBy(rsa.privateKey, { alg: "RS256", kid: "old" }, { ...GOOD, exp: NOW + 9000 });
    const fresh = signedBy(ec.privateKey, { alg: "ES256", kid: "new" }, { ...GOOD, exp: NOW + 9000 });
    await verifier.verify(old);
    at.publish(jwk(ec.publicKey, "new"));
    await expect(verifier.verify(fresh)).rejects.toMatchObject(refusal);
    expect(at.asked).toBe(1);
    time += 11_000;
    await expect(verifier.verify(fresh)).resolves.toBeDefined();
    await expect(verifier.verify(old)).rejects.toMatchObject(refusal);
  });

  test("unknown keys do not make us ask the issuer again and again, nor do requests that come at once", async () => {
    await using at = await issuer();
    at.publish(jwk(rsa.publicKey, "r"));
    const verifier = new JwtVerifier({ jwksUrl: at.url, now });
    const good = signedBy(rsa.privateKey, { alg: "RS256", kid: "r" });
    await Promise.all(Array.from({ length: 10 }, () => verifier.verify(good)));
    for (let at = 0; at < 10; at += 1) {
      const unknown = signedBy(rsa.privateKey, { alg: "RS256", kid: `k${at}` });
      await expect(verifier.verify(unknown)).rejects.toMatchObject(refusal);
    }
    expect(at.asked).toBe(1);
  });

  test("known keys stay good while the issuer does not answer; unknown ones cannot be checked", async () => {
    await using at = await issuer();
    let time = now();
    at.publish(jwk(rsa.publicKey, "r"));
    const verifier = new JwtVerifier({ jwksUrl: at.url, now: () => time });
    const good = signedBy(rsa.privateKey, { alg: "RS256", kid: "r" }, { ...GOOD, exp: NOW + 9000 });
    await verifier.verify(good);
    at.fail(500);
    time += 6 * 60_000;
    await expect(verifier.verify(good)).resolves.toBeDefined();
    time += 11_000;
    const unknown = signedBy(rsa.privateKey, { alg: "RS256", kid: "x" }, { ...GOOD, exp: NOW + 9000 });
    await expect(verifier.verify(unknown)).rejects.toMatchObject({ code: "RUNTIME_UNAVAILABLE" });
  });
});

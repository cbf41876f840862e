import { createHmac, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ServerBed } from "./server-bed.ts";

const SECRET = "a secret of the operator, long enough";
const ISSUER = "https://issuer.example";
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
const claims = (more: object = {}) => ({
  sub: "ada",
  iss: ISSUER,
  aud: "aido",
  exp: Math.floor(Date.now() / 1000) + 600,
  ...more,
});
const EXPIRED = { exp: Math.floor(Date.now() / 1000) - 600 };

function hs256(body: object, secret = SECRET): string {
  const signed = `${part({ alg: "HS256", typ: "JWT" })}.${part(body)}`;
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
}

function rs256(body: object, key: KeyObject): string {
  const signed = `${part({ alg: "RS256", kid: "one" })}.${part(body)}`;
  return `${signed}.${sign("sha256", Buffer.from(signed), key).toString("base64url")}`;
}

/** What a server does with a good token and with wrong ones, and that it keeps none of them. */
async function expectTokens(bed: ServerBed, good: string, bad: readonly string[], other: string) {
  const ask = (token?: string) =>
    bed.call(
      "GET",
      "/api/sandbox",
      undefined,
      token === undefined ? {} : { authorization: `Bearer ${token}` },
    );
  const made = await bed.call(
    "POST",
    "/api/sandbox",
    { image: bed.image },
    { authorization: `Bearer ${good}` },
  );
  expect(made, made.text).toMatchObject({ status: 201 });
  expect((await ask(good)).json.sandboxes).toMatchObject([{ containerId: made.json.containerId }]);
  // Of another subject: nothing of the first one's.
  expect((await ask(other)).json.sandboxes).toEqual([]);
  expect(await ask()).toMatchObject({ status: 401, json: { error: { code: "MISSING_AUTH" } } });
  for (const token of bad) {
    expect(await ask(token)).toMatchObject({ status: 401, json: { error: { code: "INVALID_API_KEY" } } });
  }
  const audit = await bed.call("GET", "/api/audit", undefined, { authorization: `Bearer ${good}` });
  expect(audit.json.entries).toContainEqual(expect.objectContaining({ owner: "jwt:ada", name: "ada" }));
  await bed.signal("SIGTERM");
  const kept = readdirSync(bed.dataDir, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => readFileSync(join(one.parentPath, one.name), "latin1"));
  for (const token of [good, other, ...bad]) {
    const [, , signature = ""] = token.split(".");
    for (const text of [bed.stderr, ...kept]) expect(text.includes(signature)).toBe(false);
  }
  expect(bed.stderr).not.toContain(SECRET);
}

test("S3-9 S3-44 a server with a secret lets in who has a token signed with it, and keeps no token", async () => {
  const env = {
    AIDO_SERVE_JWT_SECRET: SECRET,
    AIDO_SERVE_JWT_ISSUER: ISSUER,
    AIDO_SERVE_JWT_AUDIENCE: "aido",
    AIDO_LOG_LEVEL: "debug",
  };
  await using bed = await ServerBed.start({ driver: "local", env });
  const bad = [
    hs256(claims(EXPIRED)),
    hs256(claims(), "another secret, also long enough"),
    hs256(claims({ iss: "https://other.example" })),
    `${part({ alg: "none" })}.${part(claims())}.AAAA`,
  ];
  await expectTokens(bed, hs256(claims()), bad, hs256(claims({ sub: "eve" })));
});

test("S3-9 S3-44 a server that knows where keys are published lets in who has a token signed with one", async () => {
  const [own, foreign] = [0, 1].map(() => generateKeyPairSync("rsa", { modulusLength: 2048 }));
  if (own === undefined || foreign === undefined) throw new Error("no keys");
  const published = { ...own.publicKey.export({ format: "jwk" }), kid: "one", use: "sig" };
  const issuer = createServer((_, response) => response.end(JSON.stringify({ keys: [published] })));
  issuer.listen(0, "127.0.0.1");
  await once(issuer, "listening");
  try {
    const url = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/jwks.json`;
    const env = { AIDO_SERVE_JWKS_URL: url, AIDO_LOG_LEVEL: "debug" };
    await using bed = await ServerBed.start({ driver: "local", env });
    const bad = [
      rs256(claims(EXPIRED), own.privateKey),
      rs256(claims(), foreign.privateKey),
      // Signed with what is published, as if it were a secret.
      hs256(claims(), own.publicKey.export({ type: "spki", format: "pem" }).toString()),
    ];
    await expectTokens(
      bed,
      rs256(claims(), own.privateKey),
      bad,
      rs256(claims({ sub: "eve" }), own.privateKey),
    );
  } finally {
    issuer.closeAllConnections();
    issuer.close();
  }
});

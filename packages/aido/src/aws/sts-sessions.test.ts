import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { READ_ROLE, STS_KEYS, StsServer } from "../../test/backends/sts-server.ts";
import { HandClock } from "../../test/exec/hand-clock.ts";
import { StsSessions, type StsSettings } from "./sts-sessions.ts";

const REQUEST = {
  roleArn: READ_ROLE,
  sessionName: "aido-box",
  policy: '{"Version":"2012-10-17","Statement":[]}',
  durationSeconds: 900,
};

async function bed(changes: Partial<StsSettings> = {}) {
  const clock = new HandClock();
  const sts = await StsServer.start();
  sts.now = () => clock.now();
  const credentials = () => ({ ...STS_KEYS, sessionToken: undefined });
  const settings = { endpoint: sts.url, region: "eu-west-1", externalId: undefined, credentials, ...changes };
  const sessions = new StsSessions(settings, clock);
  return { clock, sts, sessions, [Symbol.asyncDispose]: () => sts[Symbol.asyncDispose]() };
}

test("S0-90 a role is assumed with a signed request that carries the session's policy and length", async () => {
  await using at = await bed();
  const given = await at.sessions.assume(REQUEST);
  expect(given).toEqual(at.sts.calls[0]?.issued);
  expect(at.sts.calls[0]?.params).toEqual({
    Action: "AssumeRole",
    Version: "2011-06-15",
    RoleArn: READ_ROLE,
    RoleSessionName: "aido-box",
    DurationSeconds: "900",
    Policy: REQUEST.policy,
  });
});

test("an external id goes along, and a session token of the host's own", async () => {
  await using at = await bed({
    externalId: "ours",
    credentials: () => ({ ...STS_KEYS, sessionToken: "host-token" }),
  });
  at.sts.externalId = "ours";
  await at.sessions.assume(REQUEST);
  expect(at.sts.calls[0]?.params["ExternalId"]).toBe("ours");
});

test.each([
  ["AccessDenied", { roleArn: READ_ROLE.replace("read", "other") }, {}, "trust policy"],
  ["ValidationError", { durationSeconds: 7200 }, {}, "aws.session"],
  [
    "SignatureDoesNotMatch",
    {},
    { credentials: () => ({ ...STS_KEYS, secretAccessKey: "wrong", sessionToken: undefined }) },
    "AWS_SECRET_ACCESS_KEY",
  ],
  [
    "InvalidClientTokenId",
    {},
    { credentials: () => ({ ...STS_KEYS, accessKeyId: "AKIAOTHER", sessionToken: undefined }) },
    "AWS_ACCESS_KEY_ID",
  ],
])("S0-90 %s is told with what to do about it", async (code, request, settings, hint) => {
  await using at = await bed(settings);
  await expect(at.sessions.assume({ ...REQUEST, ...request })).rejects.toMatchObject({
    code: "AWS_REFUSED",
    message: expect.stringContaining(code),
    hint: expect.stringContaining(hint),
  });
  expect(at.sts.refusals).toEqual([code]);
});

const CREDENTIALS = (changes: Record<string, string>) => {
  const fields = {
    AccessKeyId: "ASIA0000000000000000",
    SecretAccessKey: "leaked-secret",
    SessionToken: "token",
    Expiration: "2026-01-01T01:00:00Z",
    ...changes,
  };
  return Object.entries(fields)
    .map(([name, value]) => `<${name}>${value}</${name}>`)
    .join("");
};
const send = (status: number, body: string | Buffer) => (_: unknown, response: ServerResponse) =>
  void response.writeHead(status).end(body);

test.each<[string, (request: unknown, response: ServerResponse) => void, string]>([
  ["nothing", send(200, ""), "no credentials"],
  ["noise", send(200, Buffer.alloc(3000, 0xff)), "no credentials"],
  ["an endless document", send(200, "<a>".repeat(1_000_000)), "no credentials"],
  ["half of the credentials", send(200, CREDENTIALS({ SessionToken: "" })), "no credentials"],
  ["a token with a line's end", send(200, CREDENTIALS({ SessionToken: "a\r\nb" })), "no credentials"],
  [
    "a token that is too large",
    send(200, CREDENTIALS({ SessionToken: "x".repeat(15_000) })),
    "no credentials",
  ],
  ["a date that is none", send(200, CREDENTIALS({ Expiration: "tomorrow" })), "no credentials"],
  [
    "credentials that are over",
    send(200, CREDENTIALS({ Expiration: "2025-12-31T23:00:00Z" })),
    "that end at",
  ],
  ["another page", send(302, ""), "HTTP 302"],
  ["trouble of its own", send(503, "<Code>ServiceUnavailable</Code>"), "ServiceUnavailable"],
  ["a broken connection", (_, response) => void response.destroy(), "cannot be asked"],
  [
    "half an answer",
    (_, response) =>
      void response.writeHead(200, { "content-length": "99" }).write("<A", () => response.destroy()),
    "cannot be asked",
  ],
])("an STS that answers with %s gives nothing, and nothing of it is shown", async (what, answer, message) => {
  await using at = await bed();
  at.sts.answer = answer;
  const thrown = await at.sessions.assume(REQUEST).catch((error: unknown) => error);
  expect(thrown).toMatchObject({
    code: what === "another page" ? "AWS_REFUSED" : "AWS_UNAVAILABLE",
    message: expect.stringContaining(message),
  });
  expect(JSON.stringify(thrown) + String(thrown)).not.toContain("leaked-secret");
});

test("an STS that is not there, or says nothing until the time is up, is told so", async () => {
  await using at = await bed();
  const away = new StsSessions(
    {
      endpoint: "http://127.0.0.1:1",
      region: "x",
      externalId: undefined,
      credentials: () => ({ ...STS_KEYS, sessionToken: undefined }),
    },
    at.clock,
  );
  await expect(away.assume(REQUEST)).rejects.toMatchObject({ code: "AWS_UNAVAILABLE" });
  at.sts.answer = () => undefined;
  const leaving = new AbortController();
  const waiting = at.sessions.assume(REQUEST, leaving.signal);
  leaving.abort(new Error("time is up"));
  await expect(waiting).rejects.toThrow("time is up");
});

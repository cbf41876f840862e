import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";

test("S2-71 whoever makes a sidecar sandbox is told its address and its token, and nobody else", async () => {
  await using bed = await ApiBed.open();
  const made = await bed.call("POST", "/api/sandbox", { body: { profile: "sidecar" } });
  expect(made.status).toBe(201);
  expect(made.json.token).toMatch(/^[0-9a-f]{64}$/);
  expect(made.json.sidecarUrl).toMatch(new RegExp(`^http://127\\.0\\.0\\.1:\\d+/sidecar/${made.json.id}$`));
  const seen = await bed.call("GET", `/api/sandbox/${made.json.id}`);
  expect(seen.json.sidecarUrl).toBe(made.json.sidecarUrl);
  expect(seen.text).not.toContain(made.json.token);
  expect((await bed.call("GET", "/api/sandbox")).text).not.toContain(made.json.token);
});

test("a request that is repeated gets the sandbox without its token, which is kept nowhere", async () => {
  await using bed = await ApiBed.open();
  const ask = { body: { profile: "sidecar" }, headers: { "idempotency-key": "once" } };
  const first = await bed.call("POST", "/api/sandbox", ask);
  const again = await bed.call("POST", "/api/sandbox", ask);
  expect(again.json.id).toBe(first.json.id);
  expect(again.json).not.toHaveProperty("token");
  expect(filesWith(bed.root, first.json.token)).toEqual([]);
});

test("the SDK knows the token of a sandbox it makes, however often it had to ask", async () => {
  await using bed = await ApiBed.open();
  const made = await bed.client().sandboxes.create({ profile: "sidecar" });
  expect(made.token).toMatch(/^[0-9a-f]{64}$/);
  expect(made.sidecarUrl).toContain(`/sidecar/${made.id}`);
  const chosen = await bed.client().sandboxes.create({ profile: "sidecar", token: "mine-of-16-chars" });
  expect(chosen.token).toBe("mine-of-16-chars");
});

test("S2-72 whoever may write to a sandbox gives it a new token; others do not find it", async () => {
  await using bed = await ApiBed.open({ guarded: true });
  const [mine, theirs] = [await bed.key("mine"), await bed.key("theirs")];
  const made = await bed.post("/api/sandbox", { profile: "sidecar" }, { key: mine });
  const path = `/api/sandbox/${made.json.id}/token`;
  expect((await bed.post(path, {}, { key: theirs })).status).toBe(404);
  const issued = await bed.client(mine).sandboxes.issueToken(made.json.id);
  expect(issued.sidecarUrl).toBe(made.json.sidecarUrl);
  const run = (token: string) =>
    bed.post(`/sidecar/${made.json.id}/agents/run/cancel`, {}, { key: token }).then(({ status }) => status);
  expect([await run(made.json.token), await run(issued.token)]).toEqual([403, 200]);
  expect((await bed.post(path, { token: "chosen-by-caller" }, { key: mine })).json.token).toBe(
    "chosen-by-caller",
  );
  expect((await bed.get("/api/audit", { key: mine })).text).not.toContain(issued.token);
});

test.each(["two words of which one is secret", "easily-guessed"])(
  "a token that cannot stand in a header, or can be guessed, is refused: %j",
  async (token) => {
    await using bed = await ApiBed.open();
    const reply = await bed.call("POST", "/api/sandbox", { body: { profile: "sidecar", token } });
    expect(reply.status).toBe(400);
    expect(reply.text).toContain("16 to 256 visible characters");
    expect(reply.text).not.toContain(token);
  },
);

/** The database, its journal, logs and evidence are all below the one directory. */
function filesWith(root: string, text: string): string[] {
  const found: string[] = [];
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && readFileSync(path).includes(text)) found.push(path);
  }
  return found;
}

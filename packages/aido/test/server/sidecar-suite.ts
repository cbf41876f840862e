import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SidecarClient } from "@aido/sdk";
import { describe, expect, test } from "vitest";
import { readEvents } from "./read-events.ts";
import { ServerBed, until } from "./server-bed.ts";

const UUID = /^sandbox-[0-9a-f-]{36}$/;

interface Sidecar {
  id: string;
  url: string;
  token: string;
  client: SidecarClient;
}

/** The sidecar API of real sandboxes, through the built server. */
export function sidecarSuite(driver: "local" | "docker"): void {
  const start = (env: Record<string, string> = {}) =>
    ServerBed.start({
      driver,
      env: { ...(driver === "docker" ? { SIDECAR_IMAGE: "aido-test:python" } : {}), ...env },
    });

  describe(`the sidecar API, with the ${driver} driver`, () => {
    test("S2-2 S2-5 S2-10 S2-24 S2-135 commands run in /home/agent as an ordinary user", async () => {
      await using bed = await start();
      const { id, url, client } = await sidecar(bed);
      expect(id).toMatch(UUID);
      expect(url).toBe(`${bed.url}/sidecar/${id}`);
      const whoami = await client.exec({
        command: 'pwd; echo "$HOME"; id -u; touch mine; echo oh >&2; exit 5',
      });
      expect(whoami).toMatchObject({ exitCode: 5, stderr: "oh\n" });
      const [pwd, home, uid] = whoami.stdout.split("\n");
      expect([pwd, home]).toEqual(["/home/agent", "/home/agent"]);
      expect(Number(uid)).toBeGreaterThan(0);
      const command = { command: 'echo "$A"; pwd', env: { A: "x y" }, cwd: "/tmp", timeoutMs: 10_000 };
      expect((await client.exec(command)).stdout).toBe("x y\n/tmp\n");
      const late = await client.exec({ command: "echo begun; sleep 60", timeoutMs: 2000 });
      expect(late).toMatchObject({ exitCode: 124, stdout: "begun\n" });
      const piped = await client.exec({ command: "false | true; echo $?; cat /no/such/file" });
      expect(piped.exitCode).not.toBe(0);
    });

    test("S2-135 files are written, read and kept within the workspace, whatever links say", async () => {
      await using bed = await start();
      const { client } = await sidecar(bed);
      const content = "héllo\n".repeat(1000);
      const written = await client.writeFile("/home/agent/deep/a.txt", content);
      expect(written.size).toBe(Buffer.byteLength(content));
      expect((await client.exec({ command: "sha256sum deep/a.txt" })).stdout).toContain(written.hash);
      expect(await client.readFile("deep/a.txt")).toBe(content);
      await client.exec({
        command: "ln -s /etc/passwd link; ln -s / root; ln -s ../../etc up; echo secret > /tmp/outside",
      });
      for (const path of ["/etc/passwd", "../../etc/passwd", "/tmp/outside"]) {
        await expect(client.readFile(path)).rejects.toMatchObject({ code: "FORBIDDEN" });
        await expect(client.writeFile(path, "x")).rejects.toMatchObject({ code: "FORBIDDEN" });
      }
      for (const path of ["link", "root/etc/passwd", "up/passwd", "root/tmp/outside"]) {
        await expect(client.readFile(path)).rejects.toThrow(/^HTTP 4/);
      }
      await client.writeFile("root/tmp/outside", "changed").catch(() => undefined);
      expect((await client.exec({ command: "cat /tmp/outside" })).stdout).toBe("secret\n");
    });

    test("S2-135 a terminal is typed in, resized, and outlives the server", async () => {
      await using bed = await start();
      const first = await sidecar(bed);
      const { sessionId, shell } = await first.client.openTerminal({
        name: "work",
        rows: 30,
        cols: 100,
        env: { PS1: "> " },
      });
      expect(shell).toMatch(/\/(ba)?sh$/);
      await first.client.execute(sessionId, "stty size; tty");
      const seen = await readUntil(first.client, sessionId, 0, "/dev/");
      expect(seen.text).toContain("30 100");
      await first.client.resize(sessionId, { rows: 40, cols: 120 });
      await first.client.input(sessionId, "stty size\r");
      const more = await readUntil(first.client, sessionId, seen.next, "40 120");
      await bed.kill();
      await bed.start();
      const { client } = again(bed, first);
      expect(await client.terminals()).toMatchObject([{ sessionId, name: "work", isRunning: true }]);
      await client.execute(sessionId, "echo still-$((40+2))");
      const rest = await readUntil(client, sessionId, more.next, "still-42");
      await client.execute(sessionId, "exit 7");
      const whole = await readToEnd(client, sessionId, 0);
      expect(whole.code).toBe(7);
      expect(whole.text.startsWith(seen.text + more.text + rest.text)).toBe(true);
      await expect(client.input(sessionId, "x")).rejects.toMatchObject({ code: "TERMINAL_CLOSED" });
    });

    test("S2-135 closing a terminal ends what it has started", async () => {
      await using bed = await start();
      const { client } = await sidecar(bed);
      const { sessionId } = await client.openTerminal();
      await client.execute(sessionId, "sleep 4242 & sleep 4343");
      const count = async () =>
        (
          await client.exec({
            command: "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep 4[23]4' ",
          })
        ).stdout;
      await until("they run", async () => (await count()) !== "0\n");
      await client.closeTerminal(sessionId);
      expect(await client.terminals()).toEqual([]);
      expect(await count()).toBe("0\n");
    });

    test("S2-3 S2-71 S2-72 the token stays the same over stop and start, and ends with the sandbox", async () => {
      await using bed = await start();
      const { id, client } = await sidecar(bed);
      await client.writeFile("kept", "yes");
      await bed.post(`/api/sandbox/${id}/stop`, {});
      expect(await client.health()).toBe(false);
      await bed.post(`/api/sandbox/${id}/start`, {});
      await until("it is up", () => client.health());
      expect(await client.readFile("kept")).toBe("yes");
      const anybody = await bed.post(`/sidecar/${id}/terminals/commands`, { command: "id" });
      expect([anybody.status, anybody.json.error.code]).toEqual([401, "UNAUTHORIZED"]);
      const wrong = new SidecarClient({ url: `${bed.url}/sidecar/${id}`, token: "f".repeat(64) });
      await expect(wrong.exec({ command: "id" })).rejects.toMatchObject({ code: "FORBIDDEN" });
      await bed.call("DELETE", `/api/sandbox/${id}`);
      await expect(client.exec({ command: "id" })).rejects.toMatchObject({ code: "FORBIDDEN" });
    });

    test("S2-106 S2-107 a sandbox has a port of its own when that is set, also after a restart", async () => {
      await using bed = await start({ AIDO_SIDECAR_OWN_PORTS: "true", SIDECAR_HTTP_PORT: "0" });
      const { id, url, token, client } = await sidecar(bed);
      const { origin, pathname } = new URL(url);
      expect(origin).not.toBe(bed.url);
      expect(pathname).toBe(`/sidecar/${id}`);
      expect((await client.exec({ command: "echo one" })).stdout).toBe("one\n");
      const root = new SidecarClient({ url: origin, token });
      expect((await root.exec({ command: "echo two" })).stdout).toBe("two\n");
      expect((await fetch(`${origin}/api/sandbox`)).status).toBe(404);
      await bed.kill();
      await bed.start();
      const { sidecarUrl } = (await bed.get(`/api/sandbox/${id}`)).json;
      const next = new SidecarClient({ url: new URL(sidecarUrl).origin, token });
      expect((await next.exec({ command: "echo three" })).stdout).toBe("three\n");
    });

    test("S2-25 S2-26 S2-135 an agent in the sandbox is given messages and its session goes on", async () => {
      const argv = ["sh", "-c", 'echo "$1" >> said; echo "$(wc -l < said) in $(pwd)"', "sh", "{message}"];
      await using bed = await start({ AIDO_AGENTS: JSON.stringify({ default: { kind: "command", argv } }) });
      const { url, token, client } = await sidecar(bed);
      const first = await client.runAgent({ message: "one" });
      expect(first).toMatchObject({ success: true, error: undefined });
      expect(first.response).toContain("1 in /home/agent");
      const second = await client.runAgent({
        message: "two",
        sessionId: first.sessionId,
        maxTurns: 3,
        timeoutMs: 30_000,
      });
      expect(second).toMatchObject({ success: true, sessionId: first.sessionId });
      expect(second.response).toContain("2 in /home/agent");
      const reply = await fetch(`${url}/agents/run/stream`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify({ message: "three" }),
      });
      const events = await readEvents(reply);
      expect(events[0]?.event).toBe("start");
      expect(events.slice(-2)).toMatchObject([
        { event: "result", data: { success: true, finalText: expect.stringContaining("3 in") } },
        { event: "done" },
      ]);
      const none = await client
        .runAgent({ message: "x", identifier: "nobody" })
        .catch((thrown: unknown) => thrown);
      expect(String(none)).toContain("HTTP 500");
    });

    test("S2-70 the token is in no log, no evidence, no audit entry, no record and not in the sandbox", async () => {
      await using bed = await start({ AIDO_LOG_LEVEL: "debug" });
      const { id, token, client } = await sidecar(bed);
      await client.writeFile("a", "b");
      const inside = await client.exec({
        command: "env; cat /proc/1/environ /proc/self/environ 2>/dev/null",
      });
      expect(inside.stdout).not.toContain(token);
      const { sessionId } = await client.openTerminal();
      await client.closeTerminal(sessionId);
      const { stdout: evidence } = await bed.aido("evidence", id);
      const audit = await bed.get("/api/audit");
      expect(audit.text).toContain("writeSidecarFile");
      await bed.signal("SIGTERM");
      expect(bed.stderr).toContain("runSidecarCommand");
      for (const text of [evidence, audit.text, bed.stderr]) expect(text).not.toContain(token);
      const files = readdirSync(bed.dataDir, { recursive: true, withFileTypes: true });
      const holders = files.filter(
        (one) => one.isFile() && readFileSync(join(one.parentPath, one.name)).includes(token),
      );
      expect(holders).toEqual([]);
      await bed.start();
    });
  });
}

async function sidecar(bed: ServerBed): Promise<Sidecar> {
  const { json, status, text } = await bed.post("/api/sandbox", { profile: "sidecar" });
  if (status !== 201) throw new Error(`no sandbox: ${status} ${text}\n${bed.stderr}`);
  const { id, sidecarUrl: url, token } = json;
  return { id, url, token, client: new SidecarClient({ url, token }) };
}

/** The same sandbox at a server that has taken another port. */
function again(bed: ServerBed, { id, token }: Sidecar): Sidecar {
  const url = `${bed.url}/sidecar/${id}`;
  return { id, url, token, client: new SidecarClient({ url, token }) };
}

async function readUntil(client: SidecarClient, id: string, from: number, what: string) {
  let text = "";
  let next = from;
  const limit = AbortSignal.timeout(30_000);
  for await (const event of client.stream(id, { offset: from, signal: limit })) {
    if (event.type === "exit") throw new Error(`it ended: ${text}`);
    text += event.data;
    next = event.offset + Buffer.byteLength(event.data);
    if (text.includes(`\n${what}`) || text.includes(`\r${what}`)) return { text, next };
  }
  throw new Error(`not seen: ${what}`);
}

async function readToEnd(client: SidecarClient, id: string, from: number) {
  let text = "";
  for await (const event of client.stream(id, { offset: from, signal: AbortSignal.timeout(30_000) })) {
    if (event.type === "exit") return { text, code: event.code };
    text += event.data;
  }
  throw new Error("the stream has no end");
}

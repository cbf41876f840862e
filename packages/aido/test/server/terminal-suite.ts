import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { ExecViewer } from "./exec-viewer.ts";
import { ServerBed, until } from "./server-bed.ts";

/** Terminals and other live commands of the built server. */
export function terminalSuite(driver: "local" | "docker"): void {
  describe(`a terminal over WebSocket, with the ${driver} driver`, () => {
    test("S3-84 takes input and resizes, and a viewer that comes back sees what it missed", async () => {
      await using bed = await ServerBed.start({ driver });
      const id = await bed.sandbox();
      const pty = { rows: 24, cols: 80 };
      const { json } = await bed.exec(id, ["sh"], { background: true, pty, stdin: true, env: { PS1: "$ " } });
      const first = new ExecViewer(bed, id, json.id);
      const watching = first.watch();
      await until("the prompt is there", () => first.text.includes("$ "));
      first.send({ type: "stdin", data: "stty size\n" });
      await until("the size is told", () => first.text.includes("24 80"));
      first.send({ type: "resize", rows: 40, cols: 132 });
      first.send(Buffer.from("stty size\n"));
      await until("the new size is told", () => first.text.includes("40 132"));

      const second = new ExecViewer(bed, id, json.id);
      const also = second.watch();
      await until("the second viewer has caught up", () => second.text === first.text);
      first.close();
      await watching;
      second.send({ type: "stdin", data: "echo while-you-were-away\n" });
      await until("the output is seen", () => second.text.includes("\nwhile-you-were-away"));

      const back = new ExecViewer(bed, id, json.id, first.next);
      const again = back.watch();
      await until("the first one sees what it missed", () => first.text + back.text === second.text);
      back.send({ type: "stdin", data: "exit 3\n" });
      await Promise.all([also, again]);
      expect(second.end).toMatchObject({ exitCode: 3, status: "error" });
      expect(back.end).toMatchObject({ exitCode: 3 });
      expect(first.text + back.text).toBe(second.text);
      expect([first.wrong, second.wrong, back.wrong]).toEqual([undefined, undefined, undefined]);
    });

    test("S3-82 a signal reaches the command, and messages that make no sense are told to be so", async () => {
      await using bed = await ServerBed.start({ driver });
      const id = await bed.sandbox();
      const { json } = await bed.sh(id, "echo up; exec sleep 600", { background: true });
      const socket = bed.socket(`/api/sandbox/${id}/exec/${json.id}/ws`);
      const messages: { type: string; error?: { code: string }; state?: string }[] = [];
      socket.on("message", (data) => messages.push(JSON.parse(String(data))));
      await once(socket, "open");
      const closed = once(socket, "close");
      for (const nonsense of ["{", '{"type":"dance"}', '{"type":"resize","rows":0,"cols":1}', "[]"]) {
        const before = messages.filter(({ type }) => type === "error").length;
        socket.send(nonsense);
        await until("it is told", () => messages.filter(({ type }) => type === "error").length > before);
        expect(messages.at(-1)?.error?.code).toBe("VALIDATION_ERROR");
      }
      socket.send(JSON.stringify({ type: "signal", signal: "KILL" }));
      expect((await closed)[0]).toBe(1000);
      expect(messages.at(-1)).toMatchObject({ type: "end", state: "killed" });
    });

    test("what cannot be watched is refused before the protocol is switched", async () => {
      await using bed = await ServerBed.start({ driver });
      const id = await bed.sandbox();
      const { json } = await bed.sh(id, "true");
      const refusal = async (path: string, headers: Record<string, string> = {}) => {
        const socket = new WebSocket(`${bed.url.replace("http", "ws")}${path}`, { headers });
        socket.on("error", () => undefined);
        const [, response] = await once(socket, "unexpected-response");
        response.resume();
        return response.statusCode;
      };
      const good = `/api/sandbox/${id}/exec/${json.id}/ws`;
      expect(await refusal("/api/sandbox/nope/exec/x/ws")).toBe(404);
      expect(await refusal(`/api/sandbox/${id}/exec/nope/ws`)).toBe(404);
      expect(await refusal(`/api/sandbox/${id}/exec/%zz/ws`)).toBe(400);
      expect(await refusal(`${good}?stdoutOffset=-1`)).toBe(400);
      expect(await refusal("/api/nowhere")).toBe(404);
      expect(await refusal(good, { origin: "https://evil.example" })).toBe(403);
      expect(await refusal(good, { "x-api-key": "wrong" })).toBe(401);
      expect((await bed.get("/health")).status).toBe(200);
    });

    test("a key opens a WebSocket from a browser, which cannot set headers", async () => {
      await using bed = await ServerBed.start({ driver });
      const id = await bed.sandbox();
      const { json } = await bed.sh(id, "echo hi");
      const made = await bed.aido("key", "create", "browser", "--scope", "admin");
      const key = made.stdout.trim();
      const path = `/api/sandbox/${id}/exec/${json.id}/ws`;
      const refused = bed.socket(path);
      refused.on("error", () => undefined);
      const [, response] = await once(refused, "unexpected-response");
      expect(response.statusCode).toBe(401);
      const socket = bed.socket(`${path}?key=${key}`);
      const [first] = await once(socket, "message");
      expect(JSON.parse(String(first))).toMatchObject({ type: "output", stream: "stdout", offset: 0 });
      await once(socket, "close");
      expect(bed.stderr).not.toContain(key);
    });
  });
}

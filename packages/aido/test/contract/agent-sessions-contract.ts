import { describe, expect, test } from "vitest";
import { START, type StoreUnderTest, sandboxRecord } from "./records.ts";

const at = (ms: number) => new Date(START + ms);

/** The part of the stores' contract about sessions of agents. */
export function agentSessionsContract(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`${name} sessions of agents`, () => {
    const claim = (runId: string, untilMs: number, sessionId = "s1") => ({
      sandboxId: "aaaa",
      sessionId,
      agent: "mine",
      runId,
      until: at(untilMs),
    });

    test("S2-26 a session has one run at a time and remembers what its agent calls it", async () => {
      await using opened = await open();
      const { sandboxes, agentSessions } = opened.store;
      await expect(agentSessions.take(claim("r1", 100), at(0))).rejects.toMatchObject({
        code: "CONTAINER_NOT_FOUND",
      });
      await sandboxes.insert(sandboxRecord("aaaa"));
      expect(await agentSessions.take(claim("r1", 100), at(0))).toEqual({ taken: true, before: undefined });
      expect(await agentSessions.take(claim("r2", 200), at(50))).toMatchObject({
        taken: false,
        before: { runId: "r1", agent: "mine", reference: undefined },
      });
      expect(await agentSessions.take(claim("r2", 200, "s2"), at(50))).toMatchObject({ taken: true });
      await agentSessions.keepReference("aaaa", "s1", "r9", "not its own");
      await agentSessions.keepReference("aaaa", "s1", "r1", "ref-1");
      await agentSessions.release("aaaa", "s1", "r9", at(60));
      expect(await agentSessions.renew(claim("r9", 900))).toBe(false);
      expect(await agentSessions.renew(claim("r1", 150))).toBe(true);
      expect(await agentSessions.get("aaaa", "s1")).toEqual({
        sandboxId: "aaaa",
        sessionId: "s1",
        agent: "mine",
        reference: "ref-1",
        runId: "r1",
        runUntil: at(150),
        usedAt: at(0),
      });
      await agentSessions.release("aaaa", "s1", "r1", at(70));
      expect(await agentSessions.take(claim("r3", 300), at(80))).toMatchObject({
        taken: true,
        before: { reference: "ref-1", runId: undefined, runUntil: undefined, usedAt: at(70) },
      });
      expect((await agentSessions.list("aaaa")).map(({ sessionId }) => sessionId)).toEqual(["s1", "s2"]);
    });

    test("a session whose run has died is taken over, and told which run that was", async () => {
      await using opened = await open();
      const { sandboxes, agentSessions } = opened.store;
      await sandboxes.insert(sandboxRecord("aaaa"));
      await agentSessions.take(claim("dead", 100), at(0));
      expect(await agentSessions.take(claim("next", 300), at(100))).toMatchObject({
        taken: true,
        before: { runId: "dead" },
      });
      await agentSessions.release("aaaa", "s1", "dead", at(110));
      expect(await agentSessions.get("aaaa", "s1")).toMatchObject({ runId: "next" });
    });

    test("sessions go with their sandbox", async () => {
      await using opened = await open();
      const { sandboxes, agentSessions } = opened.store;
      await sandboxes.insert(sandboxRecord("aaaa"));
      await agentSessions.take(claim("r1", 100), at(0));
      await agentSessions.removeAll("aaaa");
      expect(await agentSessions.list("aaaa")).toEqual([]);
      await agentSessions.take(claim("r1", 100), at(0));
      await sandboxes.remove("aaaa");
      expect(await agentSessions.get("aaaa", "s1")).toBeUndefined();
    });
  });
}

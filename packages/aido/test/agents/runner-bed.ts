import type { AgentEvent, AgentRequest } from "@aido/sdk/protocol";
import { AcpAdapter } from "../../src/agents/acp/acp-adapter.ts";
import { ClaudeAdapter } from "../../src/agents/claude/claude-adapter.ts";
import { CommandAdapter } from "../../src/agents/command/command-adapter.ts";
import type { AgentDefinition } from "../../src/core/agent/agent-adapter.ts";
import { AgentRegistry } from "../../src/core/agent/agent-registry.ts";
import { AgentRunner } from "../../src/core/agent/agent-runner.ts";
import type { Clock } from "../../src/core/clock.ts";
import type { FakeProgram } from "../../src/drivers/fake/fake-program.ts";
import { type ExecBed, type FakeDriver, fakeBed, type Host, SANDBOX } from "../exec/exec-bed.ts";

/** An agent of the settings; `argv` is usually a program of the fake sandbox. */
export function definition(
  identifier: string,
  argv: AgentDefinition["argv"],
  changes: Partial<AgentDefinition> = {},
): AgentDefinition {
  return {
    identifier,
    kind: "command",
    displayName: identifier,
    description: "",
    argv,
    env: {},
    permissions: "allow",
    ...changes,
  };
}

export interface RunnerBed extends AsyncDisposable {
  readonly bed: ExecBed<FakeDriver>;
  readonly runner: AgentRunner;
  /** Another process on the same store. */
  newRunner(): AgentRunner;
  /** Runs an agent and keeps all it told. */
  run(request: AgentRequest): Promise<{
    result: Awaited<ReturnType<AgentRunner["run"]>>;
    events: AgentEvent[];
  }>;
}

/** Agents as fake programs in a fake sandbox. */
export async function runnerBed(
  agents: readonly AgentDefinition[],
  programs: Readonly<Record<string, FakeProgram>> = {},
  clock?: Clock,
): Promise<RunnerBed> {
  const bed = await fakeBed(clock === undefined ? { programs } : { programs, clock });
  const registry = new AgentRegistry({
    definitions: agents,
    defaultAgent: agents[0]?.identifier ?? "none",
    adapters: {
      command: async () => new CommandAdapter(),
      claude: async () => new ClaudeAdapter(),
      acp: async () => new AcpAdapter(),
    },
  });
  const make = (host: Host) =>
    new AgentRunner({
      registry,
      execs: host.execs,
      store: bed.store,
      clock: bed.clock,
      sandboxes: { resolve: () => bed.record(), resolveRunning: () => bed.record() },
      evidence: {
        append: async (_, event, detail = {}) => {
          bed.told.push({ event, detail });
        },
        appendSoon: () => undefined,
      },
    });
  const runners = [make(bed.host)];
  const [runner] = runners as [AgentRunner];
  return {
    bed,
    runner,
    newRunner: () => {
      const next = make(bed.newHost());
      runners.push(next);
      return next;
    },
    run: async (request) => {
      const events: AgentEvent[] = [];
      const onEvent = (event: AgentEvent) => void events.push(event);
      return { result: await runner.run(SANDBOX, request, { onEvent }), events };
    },
    [Symbol.asyncDispose]: async () => {
      for (const one of runners) await one.close();
      await bed[Symbol.asyncDispose]();
    },
  };
}

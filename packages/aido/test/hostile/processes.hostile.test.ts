import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../contract/driver-backend.ts";
import { marked } from "./canaries.ts";
import { DRIVERS, Range } from "./range.ts";

const BOMB = `
import os
print("begun", flush=True)
while True:
    try: os.fork()
    except OSError: pass
`;
const DAEMONS = `
import os, sys, time
for i in range(200):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/")
            time.sleep(600)
        os._exit(0)
print("started", flush=True)
`;
const SIGNALS_TO_INIT = `
import os, signal
for number in range(1, 65):
    try: os.kill(1, number)
    except OSError: pass
    try: signal.pidfd_send_signal(os.pidfd_open(1), number)
    except (OSError, AttributeError): pass
print("sent")
`;
/** Queued signals carry what the sender writes, a false sender too. */
const FORGED_SIGNALS = `
my $number = \`uname -m\` =~ /aarch64/ ? 138 : 129;
for my $code (-1, 0, 128, -6) {
  my $info = pack("iii", 15, 0, $code) . ("\\0" x 116);
  syscall($number, 1, 15, $info);
}
print "sent\\n";
`;
const KILL_PARENTS = `
import os, signal, time
for _ in range(20):
    parent = os.getppid()
    if parent > 1:
        try: os.kill(parent, signal.SIGKILL)
        except OSError: pass
    time.sleep(0.01)
`;
const STOP_ALL = `
import os, signal
for name in os.listdir("/proc"):
    if name.isdigit() and int(name) not in (1, os.getpid()):
        try: os.kill(int(name), signal.SIGSTOP)
        except OSError: pass
os.kill(os.getpid(), signal.SIGSTOP)
`;
const STUBBORN = `
import signal, time
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
print("ready", flush=True)
while True: time.sleep(1)
`;
const CLOSE_ALL = `
import os, sys
os.closerange(0, 4096)
os._exit(7)
`;
const HOLD_PIPES = `
import os, time
if os.fork() == 0:
    os.setsid()
    time.sleep(600)
print("leaving the pipe open", flush=True)
os._exit(5)
`;

for (const driver of DRIVERS) {
  describe(`hostile processes on ${driver}`, () => {
    let range: Range;
    beforeAll(async () => {
      range = await Range.open(driver);
    });
    afterAll(async () => {
      await range[Symbol.asyncDispose]();
    });

    test("a fork bomb fills its own limit, is ended by its timeout, and the sandbox answers again", async () => {
      await using target = await range.sandbox({ limits: { pids: 48 } });
      const { info } = await target.attack(BOMB, { timeoutMs: 1_000, killGraceMs: 200 });
      expect(info.status).toBe("timeout");
      await target.answers();
    });

    test("a fork bomb that fills the limit can be killed by name", async () => {
      await using target = await range.sandbox({ limits: { pids: 32 } });
      const { id } = await target.start(BOMB);
      await until("the limit is full", async () => (await range.aido.sandboxes.stats(target.id)).pids >= 30);
      await range.aido.execs.kill(target.id, id, { signal: "KILL" });
      expect((await target.end(id)).info.status).toBe("killed");
      await target.answers();
    });

    test("a sandbox is destroyed in the middle of a fork bomb", async () => {
      await using target = await range.sandbox({ limits: { pids: 64 } });
      await target.start(BOMB);
      await until("the limit is full", async () => (await range.aido.sandboxes.stats(target.id)).pids >= 60);
    });

    test("200 daemons of their own sessions end with the sandbox", async () => {
      await using target = await range.sandbox({ limits: { pids: 600 } });
      const { info, stdout } = await target.attack(DAEMONS);
      expect([info.exitCode, stdout]).toEqual([0, "started\n"]);
      await target.answers();
      // Also shows that the look for what is left sees what there is.
      await until("all run", () => marked(target.mark).length >= 200);
    });

    test("200 daemons end with a stop, and are not there after a start", async () => {
      await using target = await range.sandbox({ limits: { pids: 600 } });
      await target.attack(DAEMONS);
      await range.aido.sandboxes.stop(target.id, { graceMs: 100 });
      await range.aido.sandboxes.start(target.id);
      await target.answers();
      expect((await range.aido.sandboxes.stats(target.id)).pids).toBeLessThan(20);
    });

    test("kill -9 -1 ends its own commands and nothing else", async () => {
      await using target = await range.sandbox();
      const { info } = await target.attack("import os; os.kill(-1, 9); os.kill(os.getpid(), 9)");
      expect(info).toMatchObject({ status: "killed", signal: "SIGKILL" });
      await target.answers();
    });

    test("no signal from inside reaches the supervisor", async () => {
      await using target = await range.sandbox();
      expect((await target.attack(SIGNALS_TO_INIT)).stdout).toBe("sent\n");
      const forged = await target.attack("", { argv: ["perl", "-e", FORGED_SIGNALS] });
      expect(forged).toMatchObject({ stdout: "sent\n", stderr: "" });
      await target.answers();
    });

    test("a command that kills its own parent is ended with all it started", async () => {
      await using target = await range.sandbox();
      const { info } = await target.attack(KILL_PARENTS);
      expect(info.status).not.toBe("running");
      await target.answers();
    });

    test("a command that stops everything, itself too, can be killed", async () => {
      await using target = await range.sandbox();
      const { id } = await target.start(STOP_ALL);
      await range.aido.execs.kill(target.id, id, { signal: "TERM", graceMs: 200 });
      expect((await target.end(id)).info.status).toBe("killed");
      await target.answers();
    });

    test("a command that ignores every signal is killed after the grace", async () => {
      await using target = await range.sandbox();
      const { id } = await target.begun(STUBBORN, "ready");
      await range.aido.execs.kill(target.id, id, { signal: "TERM", graceMs: 300 });
      expect((await target.end(id)).info).toMatchObject({ status: "killed", signal: "SIGKILL" });
      await target.answers();
    });

    test("a command that closes every descriptor still tells how it ended", async () => {
      await using target = await range.sandbox();
      expect((await target.attack(CLOSE_ALL)).info).toMatchObject({ status: "exited", exitCode: 7 });
      await target.answers();
    });

    test("a daemon that holds the pipes open does not hold up the end", async () => {
      await using target = await range.sandbox();
      const { info, stdout } = await target.attack(HOLD_PIPES);
      expect([info.exitCode, stdout]).toEqual([5, "leaving the pipe open\n"]);
      await target.answers();
    });
  });
}

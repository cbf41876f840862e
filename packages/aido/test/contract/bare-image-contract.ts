import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { OutputRange } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import type { CoreAido } from "../../src/core/core-aido.ts";
import { collect } from "../../src/core/exec/collect.ts";
import { type AidoUnderTest, openPlace } from "./aido-contract.ts";
import { until } from "./driver-backend.ts";

export interface BareImage extends AidoUnderTest {
  /** What begins the command of one of the usual small programs, without a shell. */
  readonly program: (name: string) => readonly string[];
  /** Where busybox is brought to first, into an image that has none of them. */
  readonly bring?: string;
  /** Commands that it does not have. */
  readonly missing: readonly string[];
}

const LIMIT_MS = 30_000;

/** Commands and files work with nothing from the image: each command is a program itself, none needs a shell. */
export function bareImageContract(under: BareImage): void {
  const { program, bring } = under;

  async function openSandbox() {
    const place = openPlace(under);
    try {
      const aido = await place.open();
      const { id } = await aido.sandboxes.create({ ttlMs: 120_000 });
      if (bring !== undefined) {
        await aido.files.write(id, bring, readFileSync(hostBusybox()), { mode: 0o755 });
      }
      return { place, aido, id, [Symbol.asyncDispose]: () => place[Symbol.asyncDispose]() };
    } catch (error) {
      await place[Symbol.asyncDispose]();
      throw error;
    }
  }

  describe(`${under.image} on ${under.driver}`, () => {
    test("arguments arrive as they are, and both streams and the exit code come back apart", async () => {
      await using at = await openSandbox();
      const run = (name: string, ...rest: string[]) =>
        collect(
          at.aido.execs,
          at.id,
          { argv: [...program(name), ...rest] },
          { maxBytes: 10_000, signal: soon() },
        );
      const odd = ["a b", "", "$HOME", "*", "ü\n", "'\"`"];
      expect((await run("printf", "<%s>", ...odd)).stdout.toString()).toBe(
        odd.map((each) => `<${each}>`).join(""),
      );
      await at.aido.files.write(at.id, "kept", Buffer.from("kept\n"));
      const both = await run("cat", "kept", "none");
      expect(both.info).toMatchObject({ status: "exited", exitCode: 1, stdoutBytes: 5 });
      expect(both.stdout.toString()).toBe("kept\n");
      expect(both.stderr.toString()).toMatch(/^cat: .*none.*No such file or directory\n$/);
    });

    test("a command is refused that the image does not have", async () => {
      await using at = await openSandbox();
      for (const name of under.missing) {
        await expect(at.aido.execs.start(at.id, { argv: [name] })).rejects.toMatchObject({
          code: "EXECUTION_FAILED",
          details: { errno: "ENOENT" },
        });
      }
    });

    test("the next process goes on with a command at the byte where the first one stopped reading", async () => {
      await using at = await openSandbox();
      const { id: exec } = await at.aido.execs.start(at.id, { argv: program("cat"), stdin: true });
      await at.aido.execs.writeStdin(at.id, exec, Buffer.from("first\n"), soon());
      await until("the first line is back", async () => (await said(at.aido, at.id, exec)) === "first\n");
      await at.aido.close();
      const next = await at.place.open();
      await next.execs.writeStdin(at.id, exec, Buffer.from("second\n"), soon());
      await next.execs.closeStdin(at.id, exec, soon());
      expect(await said(next, at.id, exec, { stdoutOffset: 6, follow: true })).toBe("second\n");
      expect(await next.execs.wait(at.id, exec, soon())).toMatchObject({
        status: "exited",
        exitCode: 0,
        stdoutBytes: 13,
      });
      expect(await said(next, at.id, exec, { stdoutOffset: 3 })).toBe("st\nsecond\n");
    });

    test("a kill reaches a descendant in a session of its own", async () => {
      await using at = await openSandbox();
      await at.aido.files.write(at.id, "kept", Buffer.from("kept\n"));
      const pids = async () => (await at.aido.driver.usage(at.id)).pids;
      await until("nothing but the supervisor is left", async () => (await pids()) === 1);
      const descendant = [...program("setsid"), ...program("tail"), "-f", "kept"];
      const { id: exec } = await at.aido.execs.start(at.id, {
        argv: [...program("find"), "kept", "-exec", ...descendant, ";"],
      });
      await until("the descendant runs", async () => (await said(at.aido, at.id, exec)) === "kept\n");
      expect(await pids()).toBeGreaterThanOrEqual(4);
      await at.aido.execs.kill(at.id, exec);
      expect(await at.aido.execs.wait(at.id, exec, soon())).toMatchObject({
        status: "killed",
        signal: "SIGTERM",
      });
      // Besides what waits for the next command.
      await until("nothing is left of it", async () => (await pids()) === 2);
    });

    test("files are written, read, told, moved, removed and carried as archives", async () => {
      await using at = await openSandbox();
      const { files } = at.aido;
      const content = Buffer.alloc(300_000, "0123456789");
      await files.mkdir(at.id, "from/empty");
      await files.write(at.id, "from/deep/ünï code", content, { mode: 0o750 });
      await files.write(at.id, "from/short", Buffer.from("short"));
      expect(await files.stat(at.id, "from/deep/ünï code")).toMatchObject({
        type: "file",
        size: content.length,
        mode: 0o750,
      });
      expect((await everything(files.read(at.id, "from/deep/ünï code"))).equals(content)).toBe(true);
      await files.move(at.id, "from/short", "from/deep/moved");
      await expect(files.stat(at.id, "from/short")).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
      const shape = async (path: string) =>
        (await files.list(at.id, path, { recursive: true })).map(({ path: name, type, size, mode }) =>
          type === "file" ? [name, type, mode, size] : [name, type, mode],
        );
      expect(await shape("from")).toEqual([
        ["deep", "directory", 0o755],
        ["deep/moved", "file", 0o644, 5],
        ["deep/ünï code", "file", 0o750, content.length],
        ["empty", "directory", 0o755],
      ]);
      await files.tarIn(at.id, "to", files.tarOut(at.id, "from", soon()));
      expect(await shape("to")).toEqual(await shape("from"));
      expect((await everything(files.read(at.id, "to/deep/ünï code"))).equals(content)).toBe(true);
      await files.remove(at.id, "from");
      await files.remove(at.id, "from");
      await expect(files.list(at.id, "from")).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
    });
  });
}

const soon = () => AbortSignal.timeout(LIMIT_MS);

/** Static, as the images have it. */
function hostBusybox(): string {
  return execFileSync("sh", ["-c", "command -v busybox"], { encoding: "utf8" }).trim();
}

async function said(aido: CoreAido, id: string, exec: string, range: OutputRange = {}): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const { stream, data } of aido.execs.output(id, exec, range, soon())) {
    if (stream === "stdout") chunks.push(data);
  }
  return Buffer.concat(chunks).toString();
}

async function everything(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts);
}

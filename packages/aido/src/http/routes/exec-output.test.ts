import type { Aido, Execs } from "@aido/sdk";
import { expect, test } from "vitest";
import { ApiBed } from "../../../test/server/api-bed.ts";
import { MAX_REPLY_BYTES, readOutput } from "./exec-output.ts";

const MIB = 1024 * 1024;

test("what an answer has no room for is not read, and the other stream is there all the same", async () => {
  await using bed = await ApiBed.open({
    programs: {
      loud: async (process) => {
        for (let at = 0; at < 40; at += 1) await process.stdout(Buffer.alloc(MIB, "x"));
        await process.stderr("said last");
        return 0;
      },
    },
  });
  const { json } = await bed.exec(await bed.sandbox(), ["loud"]);
  let read = 0;
  const output: Execs["output"] = async function* (...asked) {
    for await (const chunk of bed.aido.execs.output(...asked)) {
      read += chunk.data.length;
      yield chunk;
    }
  };
  const { execs } = bed.aido;
  const info = await execs.get(json.containerId, json.id);
  const reply = await readOutput(
    { execs: { output } } as Aido,
    info,
    {},
    "utf8",
    new AbortController().signal,
  );
  expect(reply).toMatchObject({ stdoutOffset: MAX_REPLY_BYTES, stderr: "said last", truncated: true });
  expect(read).toBeLessThan(MAX_REPLY_BYTES + MIB);
});

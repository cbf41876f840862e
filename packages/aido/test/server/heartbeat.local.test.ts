import { once } from "node:events";
import { expect, test } from "vitest";
import { ServerBed, until } from "./server-bed.ts";

test("a terminal on which nothing happens is asked whether it is still there", async () => {
  await using bed = await ServerBed.start({ driver: "local" });
  const id = await bed.sandbox();
  const { json } = await bed.sh(id, "sleep 600", { background: true });
  const socket = bed.socket(`/api/sandbox/${id}/exec/${json.id}/ws`);
  await once(socket, "open");
  let pings = 0;
  socket.on("ping", () => {
    pings += 1;
  });
  await until("it is asked twice and stays", () => pings >= 2, 60_000);
  expect(socket.readyState).toBe(socket.OPEN);
  socket.terminate();
});

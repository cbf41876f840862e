import { randomBytes } from "node:crypto";
import { withAido } from "../product.mjs";
import { median, round, timed } from "../statistics.mjs";

const FEW = 100;
const MANY = 10_000;
const OWNER = { "dev.aido.owner": "key:bench" };

/** What a server does again and again must cost the same however many sandboxes it remembers. */
export function scaleRecords() {
  return withAido("local", async (aido) => {
    const template = await aido.sandboxes.build({ image: "bash" });
    await fill(aido, template, 0, FEW);
    const few = await costs(aido, template);
    await fill(aido, template, FEW, MANY);
    const many = await costs(aido, template);
    for (let at = 0; at < MANY; at++) await aido.store.sandboxes.remove(id(at));
    const ratios = Object.fromEntries(
      Object.keys(few).map((name) => [name, round(many[name] / few[name], 2)]),
    );
    const worst = Math.max(...Object.values(ratios));
    return {
      value: round(Math.max(...Object.values(many))),
      unit: "ms",
      few,
      many,
      ratios,
      baseline: round(Math.max(...Object.values(few))),
      ratio: worst,
      want: "list, claim and reaper within 1.5 times at 100 times as many records",
      ok: worst <= 1.5,
    };
  });
}

const id = (at) => `bench${String(at).padStart(5, "0")}`;

async function fill(aido, template, from, to) {
  const expiresAt = new Date(Date.now() + 3_600_000);
  for (let at = from; at < to; at++) {
    await aido.store.sandboxes.insert({
      ...template,
      id: id(at),
      state: "stopped",
      labels: OWNER,
      expiresAt,
    });
  }
}

async function costs(aido, template) {
  const { pool, sandboxes } = aido.store;
  const list = () => aido.sandboxes.list({ limit: 50, labels: OWNER });
  const claim = async () => {
    const record = { ...template, id: randomBytes(8).toString("hex"), state: "running", labels: OWNER };
    await pool.insert({ record, key: "bench", holder: "bench", isReady: true });
    await pool.claim(record.id, "bench", record);
    await sandboxes.remove(record.id);
  };
  return {
    list: await cost(list),
    claim: await cost(claim),
    expire: await cost(() => aido.sandboxes.expire()),
  };
}

async function cost(action) {
  for (let at = 0; at < 20; at++) await action();
  const samples = [];
  for (let at = 0; at < 200; at++) samples.push(await timed(action));
  return round(median(samples));
}

// npm run bench [-- name…]: prints one JSON line a measure, each a ratio against the alternative measured in
// the same run, and exits 0 only if all are ok. Needs the built product, a Docker engine and bubblewrap.
import { loadavg } from "node:os";
import { measures } from "./measures/index.mjs";

const asked = process.argv.slice(2).filter((argument) => argument !== "--");
if (asked.includes("--help")) {
  console.log(`npm run bench [-- name…]\n\nmeasures: ${Object.keys(measures).join(" ")}`);
  process.exit(0);
}
const unknown = asked.filter((name) => !Object.hasOwn(measures, name));
if (unknown.length > 0) {
  console.error(`unknown measure ${unknown.join(", ")}; there are ${Object.keys(measures).join(" ")}`);
  process.exit(2);
}

let allOk = true;
for (const [name, measure] of Object.entries(measures)) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  let line;
  try {
    line = { name, ...(await measure()), load: Number(loadavg()[0].toFixed(1)) };
  } catch (error) {
    line = { name, ok: false, error: error instanceof Error ? error.message : String(error) };
  }
  allOk &&= line.ok;
  console.log(JSON.stringify(line));
}
process.exit(allOk ? 0 : 1);

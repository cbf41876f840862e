import { HttpAido } from "@aido/sdk";
import { toAidoError } from "@aido/sdk/protocol";
import type { Config } from "../config/config.ts";
import type { DoctorCheck, DoctorReport } from "./context.ts";

/** What the named server says it can do; this machine does not matter then. */
export async function serverReport(config: Config, url: string): Promise<DoctorReport> {
  const { requestTimeoutMs } = config;
  const server = new HttpAido({ url, apiKey: config.apiKey?.reveal(), requestTimeoutMs });
  try {
    const { version, driver, isolations, networks, warnings } = await server.info();
    const checks: DoctorCheck[] = [
      { name: "server", status: "ok", message: `${url} runs aido ${version}` },
      { name: "driver", status: "ok", message: driver },
      { name: "isolation", status: "ok", message: isolations.join(", ") },
      { name: "network", status: "ok", message: networks.join(", ") },
      ...warnings.map((message): DoctorCheck => ({ name: driver, status: "warning", message })),
    ];
    return { ok: true, driver, checks };
  } catch (thrown) {
    const { message, hint } = toAidoError(thrown);
    return { ok: false, driver: undefined, checks: [{ name: "server", status: "failed", message, hint }] };
  }
}

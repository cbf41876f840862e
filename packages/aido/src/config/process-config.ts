import { type ConfigSources, type LoadedConfig, loadConfig } from "./load-config.ts";

/** The configuration of this process: its environment, its directory, and what the caller sets itself. */
export function loadProcessConfig(options: Pick<ConfigSources, "configPath" | "flags"> = {}): LoadedConfig {
  return loadConfig({ env: process.env, cwd: process.cwd(), ...options });
}

export function searchPath(): string {
  return process.env["PATH"] || "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

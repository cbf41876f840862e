import type { ImagePackages } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";

type Manager = keyof ImagePackages;

/** What each manager takes as a name with a version; none can be an option or a path. */
const NAMES: Readonly<Record<Manager, RegExp>> = {
  apt: /^[a-z0-9][a-z0-9+.-]*(=[A-Za-z0-9.+:~-]+)?$/,
  pip: /^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._,-]+\])?((==|>=|<=|~=|!=)[A-Za-z0-9.*+!_-]+)?$/,
  npm: /^(@[a-z0-9~][a-z0-9._~-]*\/)?[a-z0-9~][a-z0-9._~-]*(@[A-Za-z0-9.^~<>=*+_-]+)?$/,
};

/** A Dockerfile that installs packages on a base. Commands are lists of words, so that no name is read by a shell. */
export function packageDockerfile(base: string, packages: ImagePackages, user: string | undefined): string {
  const lines = [`FROM ${base}`, "USER root"];
  const apt = named("apt", packages.apt);
  if (apt.length > 0) {
    lines.push('RUN ["apt-get", "update"]');
    lines.push(run(["apt-get", "install", "--yes", "--no-install-recommends", ...apt]));
  }
  const pip = named("pip", packages.pip);
  if (pip.length > 0) {
    lines.push(run(["python3", "-m", "pip", "install", "--no-cache-dir", "--", ...pip]));
  }
  const npm = named("npm", packages.npm);
  if (npm.length > 0) lines.push(run(["npm", "install", "--global", "--no-audit", "--no-fund", ...npm]));
  if (lines.length === 2) {
    throw new AidoError("VALIDATION_ERROR", "A base without packages is the base itself", {
      hint: "Name packages, or use the base as the image of a sandbox.",
      details: { field: "packages" },
    });
  }
  if (user !== undefined) lines.push(`USER ${user}`);
  return `${lines.join("\n")}\n`;
}

function run(argv: readonly string[]): string {
  return `RUN ${JSON.stringify(argv)}`;
}

function named(manager: Manager, packages: readonly string[] = []): readonly string[] {
  for (const name of packages) {
    if (NAMES[manager].test(name)) continue;
    const text = JSON.stringify(name.slice(0, 80));
    throw new AidoError("VALIDATION_ERROR", `${text} is not the name of a package for ${manager}`, {
      hint: "Write names with an optional version, such as git, requests==2.32.3 or left-pad@1.3.0.",
      details: { field: `packages.${manager}` },
    });
  }
  return packages;
}

import { basename } from "node:path";
import { AidoError } from "@aido/sdk/protocol";

/** With the prefix before it, what every engine takes as the name of an image. */
const MOST = 120;

/** The name of a project in the name of its image: the repository's at its origin, else the directory's. */
export function projectSlug(project: {
  readonly origin: string | undefined;
  readonly directory: string;
}): string {
  const { origin, directory } = project;
  const name = origin === undefined ? basename(directory) : repositoryName(origin);
  const slug = toSlug(name);
  if (slug !== "") return slug;
  throw new AidoError(
    "VALIDATION_ERROR",
    `${JSON.stringify(name.slice(0, 200))} has no name for an image in it`,
    {
      hint: "Give the project's directory, or its repository at the origin, a name with letters a to z or digits.",
      details: { field: origin === undefined ? "directory" : "origin" },
    },
  );
}

/** The last part of an address, of any of git's kinds: `https://host/team/shop.git`, `git@host:shop.git`, `/srv/shop`. */
function repositoryName(origin: string): string {
  return (
    origin
      .replace(/\/+$/, "")
      .split(/[/:]/)
      .at(-1)
      ?.replace(/\.git$/, "") ?? ""
  );
}

function toSlug(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, MOST)
    .replace(/^-+|-+$/g, "");
}

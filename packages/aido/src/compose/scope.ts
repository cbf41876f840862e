import { createHash, randomBytes } from "node:crypto";
import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";

const FILE = "scope";
const CONTENT = /^([0-9a-f]{16}) ([0-9]+) ([0-9a-f]{16})\n$/;

/**
 * Tells the sandboxes of one data directory from all others of the same backend. It is kept in the directory, so that
 * a server whose container is made anew, or whose host is renamed, still knows its sandboxes.
 *
 * A copy of the directory must not act on the containers of the one it was copied from, which may be on an engine that
 * both use: it would stop what its own, older records do not know. So the file also holds its own inode number and the
 * place where it was made. What has neither is a copy, made by cp, rsync or tar: it gets a scope of its own, and finds
 * its sandboxes lost. A directory that was only moved keeps its inode numbers, and one that was put back in its place, or
 * is on a file system that numbers its files anew, is in the same place. A backup does not hold the file, and what is
 * restored begins with a new one. A clone of a whole disk is not told from the original.
 */
export function scopeOf(dataDir: string): string {
  const root = realpathSync(dataDir);
  const file = join(root, FILE);
  const found = read(file);
  if (found === undefined) return keepFirst(file, hasSandboxes(root) ? placeOf(root) : newScope());
  if (found.isOriginal) return found.scope;
  // Made from the copied file alone, so that all who find it at once come to the same.
  const scope = digest(`${found.identity}\n${root}`);
  renameSync(written(file, scope), file);
  return scope;
}

/** False for a copy, and for a directory that never had a scope. */
export function isMadeHere(dataDir: string): boolean {
  return read(join(realpathSync(dataDir), FILE))?.isOriginal ?? false;
}

/** For a directory whose records come from elsewhere. */
export function beginScope(dataDir: string): void {
  keepFirst(join(realpathSync(dataDir), FILE), newScope());
}

function read(file: string): { scope: string; isOriginal: boolean; identity: string } | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(file, "r");
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw thrown;
  }
  try {
    const text = readFileSync(descriptor, "utf8");
    const { ino, ctimeNs } = fstatSync(descriptor, { bigint: true });
    const [, scope = "", inode = "", place = ""] = CONTENT.exec(text) ?? [];
    const isOriginal = inode === String(ino) || place === placeOf(dirname(file));
    return { scope, isOriginal, identity: `${text}\n${ino}\n${ctimeNs}` };
  } finally {
    closeSync(descriptor);
  }
}

/** Of several at once the first one's is everybody's. */
function keepFirst(file: string, scope: string): string {
  const temporary = written(file, scope);
  try {
    linkSync(temporary, file);
    return scope;
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== "EEXIST") throw thrown;
    return read(file)?.scope ?? scope;
  } finally {
    rmSync(temporary, { force: true });
  }
}

function written(file: string, scope: string): string {
  const temporary = `${file}.${randomBytes(6).toString("hex")}`;
  const descriptor = openSync(temporary, "wx", 0o644);
  try {
    const { ino } = fstatSync(descriptor, { bigint: true });
    writeFileSync(descriptor, `${scope} ${ino} ${placeOf(dirname(file))}\n`);
    // A power cut must not leave a name without what it names: it would look like a copy.
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  return temporary;
}

function newScope(): string {
  return randomBytes(8).toString("hex");
}

/** The machine and the directory. It was the scope before that was kept, and sandboxes from then carry it. */
function placeOf(root: string): string {
  return digest(`${machine()}\n${root}`);
}

function hasSandboxes(root: string): boolean {
  try {
    return readdirSync(join(root, "sandboxes")).length > 0;
  } catch {
    return false;
  }
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

function machine(): string {
  try {
    return readFileSync("/etc/machine-id", "utf8").trim() || hostname();
  } catch {
    return hostname();
  }
}

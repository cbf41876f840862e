import { AidoError } from "@aido/sdk/protocol";

const USERNAME = /^[A-Za-z0-9._-]{1,32}$/;
/** No dot: it ends the user's name. */
const SANDBOX = /^[A-Za-z0-9_-]{1,64}$/;

export interface Login {
  sandboxId: string;
  /** Empty is the sandbox's own user. */
  username: string;
}

/** The name a client logs in with: `<sandbox>`, or `<user>.<sandbox>` for another user than the sandbox's own. */
export function toLoginName({ sandboxId, username }: Login): string {
  return username === "" ? sandboxId : `${username}.${sandboxId}`;
}

/** Undefined for what cannot be such a name. A user's name may have dots, a sandbox's id has none. */
export function parseLoginName(name: string): Login | undefined {
  const dot = name.lastIndexOf(".");
  const login = { username: dot === -1 ? "" : name.slice(0, dot), sandboxId: name.slice(dot + 1) };
  if (!SANDBOX.test(login.sandboxId)) return undefined;
  return dot === -1 || USERNAME.test(login.username) ? login : undefined;
}

/** Blank means the sandbox's own user, told as an empty name. */
export function checkUsername(username: string | undefined): string {
  const name = username?.trim() ?? "";
  if (name === "" || USERNAME.test(name)) return name;
  throw new AidoError(
    "VALIDATION_ERROR",
    `${JSON.stringify(name.slice(0, 40))} is not a user name: 1 to 32 letters, digits, ".", "_" or "-"`,
    { hint: "Leave it out to log in as the sandbox's own user.", details: { field: "username" } },
  );
}

import { z } from "zod";
import { date } from "./values.ts";

const username = z
  .string()
  .regex(/^[A-Za-z0-9._-]{0,32}$/, '1 to 32 letters, digits, ".", "_" or "-"')
  .describe("A user inside; the sandbox's own when absent");

export const sshKeyBody = z.strictObject({
  publicKey: z
    .string()
    .min(1)
    .max(16_384)
    .describe("One line as in id_ed25519.pub; options before it are refused"),
  username: username.optional(),
});
export const sshKeyQuery = z.strictObject({
  key: z.string().min(1).max(16_384).describe("The key's fingerprint, SHA256:…, or the line itself"),
  username: username.optional(),
});
export const sshAddressQuery = z.strictObject({ username: username.optional() });

export const sshKeyReply = z.object({
  containerId: z.string(),
  username: z.string().nullable(),
  type: z.string(),
  fingerprint: z.string(),
  publicKey: z.string(),
  comment: z.string(),
  createdAt: date,
});
export type SshKeyReply = z.infer<typeof sshKeyReply>;
export const sshKeysReply = z.object({ keys: z.array(sshKeyReply) });
export const sshKeyRemovedReply = z.object({
  removed: z.boolean().describe("False when there was no such key"),
});

export const sshAddressReply = z.object({
  host: z.string(),
  port: z.number().int(),
  login: z.string().describe("The user name to give to the client"),
  hostKey: z.string().describe("By which the server is known: type and key"),
});

import { z } from "zod";
import { date, filePath, sandboxReference } from "./values.ts";

export const pathQuery = z.strictObject({ path: filePath });
export const listQuery = z.strictObject({
  path: filePath.optional(),
  recursive: z.enum(["true", "false"]).optional(),
});
export const writeQuery = z.strictObject({
  path: filePath,
  mode: z
    .string()
    .regex(/^[0-7]{3,4}$/, "octal, as in 644")
    .optional(),
});
export const moveBody = z.strictObject({ from: filePath, to: filePath });
export const mkdirBody = z.strictObject({ path: filePath });

export const filePathQuery = z.strictObject({ filePath });
export const writeFilesBody = z.strictObject({
  containerId: sandboxReference,
  files: z.record(filePath, z.string()),
});
export const writtenReply = z.object({
  status: z.literal("success"),
  containerId: z.string(),
  files: z.array(z.string()),
});

export const fileReply = z.object({
  path: z.string(),
  type: z.enum(["file", "directory", "symlink", "other"]),
  size: z.number(),
  mode: z.number(),
  uid: z.number(),
  gid: z.number(),
  modifiedAt: date,
  target: z.string().nullable(),
});
export type FileReply = z.infer<typeof fileReply>;
export const fileListReply = z.object({ files: z.array(fileReply) });
export const fileEvent = z.object({
  type: z.enum(["created", "modified", "removed", "overflow"]),
  path: z.string(),
});

import { z } from "zod";
import { date, filePath, labels } from "./values.ts";

const imageName = z.string().min(1).max(512);
const packageNames = z.array(z.string().min(1).max(200)).max(500).optional();

export const pullImageBody = z.strictObject({ pull: imageName });
export const buildImageBody = z.strictObject({
  name: z.string().min(1).max(63).optional(),
  dockerfile: z
    .string()
    .min(1)
    .max(256 * 1024)
    .optional(),
  /** An image, or a short name such as `python`. */
  base: imageName.optional(),
  packages: z.strictObject({ apt: packageNames, pip: packageNames, npm: packageNames }).optional(),
  /** Path in the build to text, or to bytes as base64. */
  files: z
    .record(
      filePath,
      z.union([z.string(), z.strictObject({ base64: z.base64(), executable: z.boolean().optional() })]),
    )
    .optional(),
  labels: labels.optional(),
});
/** `pull`, or `dockerfile`, or `base` and `packages`. */
export const imageBody = z.union([pullImageBody, buildImageBody]);

export const imageReply = z.object({
  ref: z.string(),
  id: z.string(),
  tags: z.array(z.string()),
  bytes: z.number(),
  createdAt: date.nullable(),
  isBuilt: z.boolean(),
  labels,
  /** Of a build. */
  checksum: z.string().optional(),
  /** Of a build: it was there already. */
  isCached: z.boolean().optional(),
});
export type ImageReply = z.infer<typeof imageReply>;
export const imageListReply = z.object({
  aliases: z.array(z.object({ alias: z.string(), image: z.string(), isHere: z.boolean() })),
  images: z.array(imageReply),
});
export const imageDeletedReply = z.object({ status: z.literal("deleted"), ref: z.string() });

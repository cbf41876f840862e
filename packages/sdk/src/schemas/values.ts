import { z } from "zod";

/** An id, a unique prefix of one, or a name. */
export const sandboxReference = z.string().min(1).max(255);
export const execId = z
  .string()
  .regex(/^[A-Za-z0-9_.-]{1,64}$/, "1 to 64 letters, digits, dots, dashes or underscores");
export const filePath = z
  .string()
  .min(1)
  .max(4096)
  .regex(/^[^\0]*$/, "must not contain NUL");
export const environment = z.record(
  z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "names are letters, digits and underscores"),
  z.string().max(131_071),
);
/** As it can stand in a header. */
export const sandboxToken = z
  .string()
  .regex(/^[\x21-\x7e]{16,256}$/, "16 to 256 visible characters of ASCII, without spaces");
export const labels = z.record(z.string().min(1).max(128), z.string().max(1024));
export const argv = z
  .array(
    z.string().regex(/^[^\0]*$/, "must not contain NUL"),
    'a list of a program and its arguments, as in ["sh", "-c", "ls | wc -l"]',
  )
  .min(1)
  .max(4096);
export const milliseconds = z.number().int().nonnegative();
export const date = z.iso.datetime({ offset: true });

/** `512m`, `1g`, plain bytes. */
export const memoryText = z
  .string()
  .regex(/^\d+[kmg]?$/i, 'a number with an optional k, m or g, as in "512m"');
/** `0.5`. */
export const cpuText = z
  .string()
  .regex(/^\d+(\.\d+)?$/, 'a positive decimal, as in "0.5"')
  .refine((text) => Number(text) > 0, "must be above 0");

/** What a sandbox may do outside of itself; names of roles and services are checked where it is made. */
export const permissions = z.strictObject({
  aws: z
    .strictObject({
      role: z.string().min(1).max(600),
      services: z.array(z.string().min(1).max(64)).min(1).max(100),
    })
    .optional(),
});

import type { SettingDefinition } from "./setting-definition.ts";
import { bytes, duration, oneOf, text } from "./value-kinds.ts";

export type ImageBuilders = "admin" | "write" | "nobody";

/** Who may build images, of what, and how large. */
export interface ImageValues {
  "images.bases": string | undefined;
  "images.builders": ImageBuilders;
  "images.buildTimeout": number;
  "images.buildMemory": number;
  "images.buildSize": number;
  "images.buildNetwork": "bridge" | "none";
}

export const IMAGE_SETTINGS: { readonly [K in keyof ImageValues]: SettingDefinition<ImageValues[K]> } = {
  "images.bases": {
    kind: text,
    default: undefined,
    description:
      "Images that builds may start from, such as `python:*,registry.example/team/*`; every image when unset.",
  },
  "images.builders": {
    kind: oneOf("admin", "write", "nobody"),
    default: "admin",
    description:
      "Which keys of a server may build images: commands of a build run as root in the engine's own containers, with weaker walls than a sandbox.",
  },
  "images.buildTimeout": {
    kind: duration,
    default: 10 * 60_000,
    description: "How long the build of an image may take.",
  },
  "images.buildMemory": {
    kind: bytes,
    default: 2 * 1024 ** 3,
    description: "Memory and swap together of each command of a build.",
  },
  "images.buildSize": {
    kind: bytes,
    default: 10 * 1024 ** 3,
    description: "Largest image that a build may make; a larger one is removed again.",
  },
  "images.buildNetwork": {
    kind: oneOf("bridge", "none"),
    default: "bridge",
    description: "Network of the commands of a build; packages are installed over it.",
  },
};

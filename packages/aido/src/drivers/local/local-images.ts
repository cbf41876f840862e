import { AidoError } from "@aido/sdk/protocol";
import type { DriverImage, DriverImages } from "../../core/driver/driver-images.ts";

/** The host's own programs stand for every image: there is one, nothing is built and nothing removed. */
export class LocalImages implements DriverImages {
  readonly canBuild = false;

  async list(): Promise<readonly DriverImage[]> {
    return [HOST];
  }

  async find(_image: string): Promise<DriverImage | undefined> {
    return HOST;
  }

  async build(): Promise<DriverImage> {
    throw unsupported("build");
  }

  async remove(): Promise<void> {
    throw unsupported("remove");
  }
}

const HOST: DriverImage = {
  id: "host",
  tags: ["host"],
  bytes: 0,
  createdAt: undefined,
  user: undefined,
  isOwn: false,
  labels: {},
};

function unsupported(verb: string): AidoError {
  return new AidoError(
    "UNSUPPORTED",
    `The local driver has no images to ${verb}: it uses this machine's own`,
    {
      hint: "Use Docker for that: add `--driver docker`.",
    },
  );
}

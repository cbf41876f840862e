import type {
  BuildOptions,
  DriverImage,
  DriverImages,
  ImageBuild,
} from "../../../core/driver/driver-images.ts";
import { type AnEngine, answers } from "./answers.ts";

/** The images of several engines as one list. What is built is on one of them, and so are the sandboxes made from it. */
export class EnginesImages implements DriverImages {
  readonly canBuild = true;
  readonly #engines: readonly AnEngine[];

  constructor(engines: readonly AnEngine[]) {
    this.#engines = engines;
  }

  async list(signal?: AbortSignal): Promise<readonly DriverImage[]> {
    const { found, silent } = await answers(this.#engines, ({ driver }) => driver.images.list(signal));
    if (found.length === 0) throw silent[0]?.error;
    const byId = new Map(found.flatMap(([, images]) => images).map((image) => [image.id, image]));
    return [...byId.values()];
  }

  async find(image: string, signal?: AbortSignal): Promise<DriverImage | undefined> {
    return (await this.#having(image, signal))[0]?.[1];
  }

  async build(build: ImageBuild, options?: BuildOptions): Promise<DriverImage> {
    const { found, silent } = await answers(this.#engines, ({ driver }) => driver.list());
    const [least] = found.toSorted(([, a], [, b]) => a.length - b.length);
    if (least === undefined) throw silent[0]?.error;
    return await least[0].driver.images.build(build, options);
  }

  async remove(image: string, signal?: AbortSignal): Promise<void> {
    const having = await this.#having(image, signal);
    for (const [{ driver }] of having) await driver.images.remove(image, signal);
  }

  async #having(
    image: string,
    signal: AbortSignal | undefined,
  ): Promise<readonly (readonly [AnEngine, DriverImage])[]> {
    const { found, silent } = await answers(this.#engines, ({ driver }) => driver.images.find(image, signal));
    if (found.length === 0) throw silent[0]?.error;
    return found.flatMap(([engine, has]) => (has === undefined ? [] : [[engine, has] as const]));
  }
}

import { isAidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import type { ContainerSpec } from "../../src/core/driver/driver.ts";
import { type DriverBackend, type DriverSuite, specOf } from "./driver-backend.ts";
import { launch } from "./launch.ts";

/** Odd on purpose: modes, times, links, holes, and names that are no text. */
const FILL = `
cd /work && umask 022
mkdir -p deep/er empty 'with space' && chmod 2750 deep && chmod 700 empty
printf 'one' > deep/file && chmod 640 deep/file
printf 'two' > deep/er/tool && chmod 755 deep/er/tool
printf 'three' > secret && chmod 000 secret
printf 'no text' > "$(printf 'name\\377\\nline')"
ln -s /etc/passwd absolute && ln -s ../../outside above && ln -s nowhere broken
ln deep/file hard
mkfifo pipe
dd if=/dev/zero of=hole bs=1 count=1 seek=1048575 2>/dev/null
touch -d '2001-02-03 04:05:06' deep/file
`;
/** Everything about each entry but its inode. */
const SHOW = `cd /work && find . | sort | while IFS= read -r name; do stat -c '%n %F %a %u:%g %s %Y %h' "$name" 2>&1; done; readlink absolute above broken; cat deep/file deep/er/tool; cksum hole`;

export function commitContract({ make, hello, isolates }: DriverSuite): void {
  const inside = async (backend: DriverBackend, spec: Partial<ContainerSpec>) => {
    const launched = await launch(backend, spec);
    return { ...launched, spec: { ...spec, sandboxId: launched.id } };
  };

  test("S2-50 S2-55 a container of a committed image has what the stopped one had", async () => {
    await using backend = await make();
    const { driver } = backend;
    const spec = specOf(backend);
    const first = await inside(backend, spec);
    if (isolates) expect(await first.sh(FILL)).toMatchObject({ exitCode: 0, stderr: "" });
    const before = isolates ? (await first.sh(SHOW)).stdout : "";
    await driver.stop(first.id, 2_000);
    const image = await driver.commit(first.id);
    expect(image).toMatchObject({ sandboxId: first.id });
    expect(image.createdAt).toBeInstanceOf(Date);
    expect(await driver.inspect(first.id)).toMatchObject({ state: "exited" });
    await driver.remove(first.id);
    const again = await inside(backend, { ...spec, committed: image.reference });
    expect(again.container.containerId).toBeTypeOf("string");
    if (isolates) {
      expect((await again.sh(SHOW)).stdout).toBe(before);
      expect(before).toContain("deep/file");
    }
    expect(await again.client.exec([...hello])).toMatchObject({ exitCode: 0, stdout: "hello\n" });
    expect(again.container.user).toEqual(first.container.user);
  });

  test("a running sandbox is not committed, and one that is not there neither", async () => {
    await using backend = await make();
    const { id } = await launch(backend);
    await expect(backend.driver.commit(id)).rejects.toSatisfy((error) =>
      isAidoError(error, "CONTAINER_BUSY"),
    );
    await expect(backend.driver.commit("sbx_missing")).rejects.toSatisfy((error) =>
      isAidoError(error, "CONTAINER_NOT_FOUND"),
    );
    expect(await backend.driver.committedImages()).toEqual([]);
  });

  test("images are listed by sandbox and scope, and removed once or twice", async () => {
    await using backend = await make();
    const { driver } = backend;
    const other = await backend.otherScope();
    const [mine, theirs] = [specOf(backend), specOf(backend)];
    await driver.create(mine);
    await other.create(theirs);
    const image = await driver.commit(mine.sandboxId);
    const foreign = await other.commit(theirs.sandboxId);
    expect(await driver.committedImages()).toEqual([image]);
    expect(await driver.committedImages(mine.sandboxId)).toEqual([image]);
    expect(await driver.committedImages(theirs.sandboxId)).toEqual([]);
    // Refused by a driver that sees it, nothing to do for one that does not; never removed.
    await driver.removeImage(foreign.reference).catch((error) => expect(error.code).toBe("FORBIDDEN"));
    expect(await other.committedImages()).toEqual([foreign]);
    expect(await driver.removeImage(image.reference)).toBe(true);
    expect(await driver.removeImage(image.reference)).toBe(true);
    expect(await driver.committedImages()).toEqual([]);
  });

  test("an image that is not of a commit's making is refused", async () => {
    await using backend = await make();
    const reference = isolates && backend.image !== "host" ? backend.image : "../etc";
    await expect(backend.driver.removeImage(reference)).rejects.toSatisfy(
      (error) => isAidoError(error) && ["FORBIDDEN", "VALIDATION_ERROR"].includes(error.code),
    );
  });

  test("an image that is gone is told as such, and no container is left", async () => {
    await using backend = await make();
    const { driver } = backend;
    const spec = specOf(backend);
    await driver.create(spec);
    const { reference } = await driver.commit(spec.sandboxId);
    await driver.remove(spec.sandboxId);
    await driver.removeImage(reference);
    await expect(driver.create({ ...spec, committed: reference })).rejects.toSatisfy((error) =>
      isAidoError(error, "IMAGE_NOT_FOUND"),
    );
    expect(await driver.list()).toEqual([]);
  });

  test("a sandbox is committed again after it came from an image, and all its images go", async () => {
    await using backend = await make();
    const { driver } = backend;
    const spec = specOf(backend);
    await driver.create(spec);
    const first = await driver.commit(spec.sandboxId);
    await driver.remove(spec.sandboxId);
    await driver.create({ ...spec, committed: first.reference });
    const second = await driver.commit(spec.sandboxId);
    expect(second.reference).not.toBe(first.reference);
    expect(await driver.committedImages(spec.sandboxId)).toHaveLength(2);
    await driver.removeImage(first.reference);
    await driver.remove(spec.sandboxId);
    await driver.create({ ...spec, committed: second.reference });
    await driver.remove(spec.sandboxId);
    expect(await driver.removeImage(second.reference)).toBe(true);
    expect(await driver.removeImage(first.reference)).toBe(true);
    expect(await driver.committedImages()).toEqual([]);
  });

  test.runIf(isolates)("a new process finds the images of an earlier one", async () => {
    await using backend = await make();
    const spec = specOf(backend);
    await backend.driver.create(spec);
    const image = await backend.driver.commit(spec.sandboxId);
    const later = await backend.reopen();
    expect(await later.committedImages(spec.sandboxId)).toEqual([image]);
    await later.remove(spec.sandboxId);
    expect(await later.create({ ...spec, committed: image.reference })).toMatchObject({ state: "created" });
  });
}

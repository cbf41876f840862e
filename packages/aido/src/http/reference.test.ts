import { expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";
import { renderHttpReference } from "./reference.ts";

const REFERENCE = new URL("../../../../docs/reference/http-api.md", import.meta.url).pathname;

test("docs/reference/http-api.md says what the server answers", async () => {
  await using bed = await ApiBed.open();
  await expect(renderHttpReference(bed.operations)).toMatchFileSnapshot(REFERENCE);
});

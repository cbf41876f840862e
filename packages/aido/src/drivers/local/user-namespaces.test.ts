import { expect, test } from "vitest";
import { namespaceHint } from "./user-namespaces.ts";

const kernel = (settings: Record<string, string>) => (path: string) => {
  const value = settings[path];
  if (value === undefined) throw new Error("ENOENT");
  return value;
};

test.each([
  ["/proc/sys/kernel/unprivileged_userns_clone", "0\n", "kernel.unprivileged_userns_clone=1"],
  ["/proc/sys/user/max_user_namespaces", "0\n", "user.max_user_namespaces="],
  [
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "1\n",
    "apparmor_restrict_unprivileged_userns=0",
  ],
])("%s at %j is named with what to type", (path, value, typed) => {
  expect(namespaceHint(kernel({ [path]: value }))).toContain(typed);
});

test("a kernel that switches nothing off is told as such", () => {
  expect(namespaceHint(kernel({ "/proc/sys/user/max_user_namespaces": "96349" }))).toContain("Docker");
});

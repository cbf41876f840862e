import { expect, test } from "vitest";
import { projectSlug } from "./project-slug.ts";

test.each([
  ["https://github.com/team/My_Shop.git", "my-shop"],
  ["https://github.com/team/shop", "shop"],
  ["https://github.com/team/shop.git/", "shop"],
  ["git@github.com:team/Shop.API.git", "shop-api"],
  ["git@host:shop.git", "shop"],
  ["ssh://git@host:2222/~me/--shop--.git", "shop"],
  ["/srv/git/shop.git", "shop"],
  ["https://host/a/b__c  d.git", "b-c-d"],
  ["https://host/a/shop.git.git", "shop-git"],
  ["https://host/a/Größe.git", "gr-e"],
  ["../siblings/x1", "x1"],
])("S1-20 a project with the origin %s has the slug %s", (origin, slug) => {
  expect(projectSlug({ origin, directory: "/home/me/other" })).toBe(slug);
});

test("S1-20 without an origin the directory gives the slug", () => {
  expect(projectSlug({ origin: undefined, directory: "/home/me/My Project.git" })).toBe("my-project-git");
});

test("S1-20 a name without a letter or digit is refused with what to do", () => {
  for (const project of [
    { origin: "https://host/team/---.git", directory: "/x" },
    { origin: undefined, directory: "/home/目录" },
    { origin: undefined, directory: "/" },
  ]) {
    expect(() => projectSlug(project)).toThrow(expect.objectContaining({ code: "VALIDATION_ERROR" }));
  }
});

test("S1-20 a name longer than an image's may be is cut, and does not end in a dash", () => {
  const slug = projectSlug({ origin: undefined, directory: `/x/${"a".repeat(119)}-${"b".repeat(100)}` });
  expect(slug).toBe("a".repeat(119));
});

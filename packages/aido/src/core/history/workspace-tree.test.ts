import { expect, test } from "vitest";
import { EMPTY_TREE_ID, gitObject } from "./git-objects.ts";
import { WorkspaceTree } from "./workspace-tree.ts";

const file = (content: string) => ({
  mode: "100644" as const,
  id: gitObject("blob", Buffer.from(content)).id,
});

test("a change makes only the directories above it be written again", () => {
  const tree = new WorkspaceTree();
  for (let i = 0; i < 20; i++) tree.set(`d${i}/sub/f`, file(`${i}`));
  expect(tree.changedTrees().objects).toHaveLength(41);
  expect(tree.changedTrees().objects).toHaveLength(0);
  expect(tree.set("d3/sub/f", file("3"))).toBe(false);
  expect(tree.changedTrees().objects).toHaveLength(0);
  expect(tree.set("d3/sub/f", file("changed"))).toBe(true);
  const { rootId, objects } = tree.changedTrees();
  expect(objects).toHaveLength(3);
  expect(objects.at(-1)?.id).toBe(rootId);
});

test("the same files give the same tree, in whatever order they came and whatever was between", () => {
  const one = new WorkspaceTree();
  const two = new WorkspaceTree();
  for (const name of ["b", "a/x", "a.b", "a/y/z", "a0"]) one.set(name, file(name));
  two.set("a", file("a file"));
  for (const name of ["a0", "a/y/z", "a.b", "b", "gone/deep/er", "a/x"]) two.set(name, file(name));
  two.changedTrees();
  expect(two.remove("gone")).toEqual(["gone/deep/er"]);
  expect(two.changedTrees().rootId).toBe(one.changedTrees().rootId);
});

test("files and directories take each other's place", () => {
  const tree = new WorkspaceTree();
  tree.set("a/b/c", file("1"));
  tree.set("a", file("2"));
  expect([...tree.files()].map(([path]) => path)).toEqual(["a"]);
  tree.set("a/b", file("3"));
  expect([...tree.files()].map(([path]) => path)).toEqual(["a/b"]);
  expect(tree.get("a")).toBeUndefined();
  expect(tree.get("a/b")).toEqual(file("3"));
});

test("directories without files are none, and nothing at all is git's empty tree", () => {
  const tree = new WorkspaceTree();
  expect(tree.changedTrees().rootId).toBe(EMPTY_TREE_ID);
  tree.set("a/b/c", file("1"));
  tree.set("x", file("1"));
  const both = tree.changedTrees().rootId;
  expect(tree.remove("a/b/c")).toEqual(["a/b/c"]);
  expect(tree.remove("a/b/c")).toEqual([]);
  expect(tree.changedTrees().rootId).not.toBe(both);
  tree.set("a/b/c", file("1"));
  expect(tree.changedTrees().rootId).toBe(both);
  tree.remove("a");
  tree.remove("x");
  expect(tree.isEmpty).toBe(true);
  expect(tree.changedTrees().rootId).toBe(EMPTY_TREE_ID);
});

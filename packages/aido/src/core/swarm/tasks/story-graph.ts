/** What the graph's rules need of a story. */
export interface GraphStory {
  readonly id: string;
  readonly dependsOn: readonly string[];
}

/** A cycle as it is walked, `[a, b, a]`; undefined when there is none. References that lead nowhere are left out. */
export function findCycle(stories: readonly GraphStory[]): readonly string[] | undefined {
  const left = new Map(stories.map((story) => [story.id, story]));
  const dependents = dependentsById(stories);
  const open = new Map(
    stories.map(({ id, dependsOn }) => [id, new Set(dependsOn.filter((other) => left.has(other))).size]),
  );
  const free = [...open].filter(([, count]) => count === 0).map(([id]) => id);
  for (let id = free.pop(); id !== undefined; id = free.pop()) {
    left.delete(id);
    for (const dependent of dependents.get(id) ?? []) {
      const count = (open.get(dependent) ?? 0) - 1;
      open.set(dependent, count);
      if (count === 0) free.push(dependent);
    }
  }
  return left.size === 0 ? undefined : walkCycle(left);
}

/** Each story that is left depends on another that is left, so walking on must come back. */
function walkCycle(left: ReadonlyMap<string, GraphStory>): readonly string[] {
  const path: string[] = [];
  const placeOf = new Map<string, number>();
  let id = left.keys().next().value;
  while (id !== undefined && !placeOf.has(id)) {
    placeOf.set(id, path.length);
    path.push(id);
    id = left.get(id)?.dependsOn.find((other) => left.has(other));
  }
  if (id === undefined) throw new Error("the walk left the cycle");
  return [...path.slice(placeOf.get(id)), id];
}

/** Every story that needs this one, directly or through others, nearest first; itself is not among them. */
export function transitiveDependents(stories: readonly GraphStory[], id: string): ReadonlySet<string> {
  const dependents = dependentsById(stories);
  const found = new Set<string>([id]);
  for (const next of found) for (const dependent of dependents.get(next) ?? []) found.add(dependent);
  found.delete(id);
  return found;
}

function dependentsById(stories: readonly GraphStory[]): ReadonlyMap<string, ReadonlySet<string>> {
  const dependents = new Map<string, Set<string>>();
  for (const { id, dependsOn } of stories) {
    for (const other of dependsOn) {
      const known = dependents.get(other);
      if (known === undefined) dependents.set(other, new Set([id]));
      else known.add(id);
    }
  }
  return dependents;
}

import type { Aggregation, BatchAggregate, BatchItem, TaskResult } from "@aido/sdk/protocol";

/** What several answers come to; `all` is the answers themselves. */
export function aggregate(
  aggregation: Aggregation,
  items: readonly BatchItem<TaskResult>[],
): BatchAggregate | undefined {
  if (aggregation === "all") return undefined;
  const answers = items.flatMap((item, position) =>
    "success" in item && item.success ? [{ position, text: item.result.trim() }] : [],
  );
  const from = aggregation === "first" ? answers.slice(0, 1) : majority(answers, items.length);
  const [first] = from;
  return {
    aggregation,
    success: first !== undefined,
    result: first?.text ?? "",
    from: from.map(({ position }) => position),
  };
}

interface Answer {
  position: number;
  text: string;
}

/** More than half of all that were asked, not only of those that answered. */
function majority(answers: readonly Answer[], asked: number): readonly Answer[] {
  const byText = new Map<string, Answer[]>();
  for (const answer of answers) byText.set(answer.text, [...(byText.get(answer.text) ?? []), answer]);
  return [...byText.values()].find((same) => same.length * 2 > asked) ?? [];
}

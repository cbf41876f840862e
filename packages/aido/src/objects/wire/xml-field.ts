const ENTITIES: Readonly<Record<string, string>> = {
  quot: '"',
  amp: "&",
  lt: "<",
  gt: ">",
  apos: "'",
  "#34": '"',
  "#39": "'",
};

/** The text of the first element of this name, as AWS's servers write their small answers. */
export function xmlField(xml: string, name: string): string | undefined {
  const value = new RegExp(`<${name}>([^<]{1,20000})</${name}>`).exec(xml)?.[1];
  return value?.replace(
    /&(quot|amp|lt|gt|apos|#34|#39);/g,
    (whole, entity: string) => ENTITIES[entity] ?? whole,
  );
}

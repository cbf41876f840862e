import { KEYS, SETTINGS, type Values, variableOf } from "./settings.ts";
import { duration } from "./value-kinds.ts";

/** docs/reference/config.md, made of the table of settings. */
export function configPage(): string {
  return `# Configuration

Every setting has a default, so none is needed. Later sources win:

1. the defaults below
2. \`/etc/aido/config.json\`
3. \`$XDG_CONFIG_HOME/aido/config.json\` (\`~/.config/aido/config.json\`)
4. the file named with \`--config\` or \`AIDO_CONFIG\`
5. variables of the environment; \`AIDO_…\` before the other names
6. flags of the command

A file is one JSON object. Keys with a dot may be nested: \`{ "limits": { "cpus": 2 } }\`. An unknown key, a value of the
wrong kind and a variable that looks like a slip of one below are errors: aido lists all of them and ends with code 2.
\`aido config show\` prints each value and where it came from.

${KEYS.map(section).join("\n")}`;
}

function section(key: keyof Values): string {
  const { kind, description, variables = {}, default: value } = SETTINGS[key];
  const names = [variableOf(key), ...Object.keys(variables)];
  const others = Object.entries(variables).filter(([, other]) => other.what !== kind.what);
  return `## ${key}

${description}

- value: ${kind.what}
- default: ${value === undefined ? "unset" : `\`${written(key)}\``}
- variables: ${names.map((name) => `\`${name}\``).join(", ")}${others.map(([name, other]) => ` (\`${name}\`: ${other.what})`).join("")}
`;
}

/** As a person writes it: milliseconds back to a duration. */
function written(key: keyof Values): string {
  const { kind, default: value } = SETTINGS[key];
  return kind === duration ? `${Number(value) / 1000}s` : String(value);
}

/** Built-in starting points. A spec that names one takes from it every key that it does not set itself. */
export const TEMPLATES = {
  python: {
    about: "Python 3.12, ten minutes, no network",
    text: 'name: python\nruntime: python\nttl: 10m\nenv:\n  PYTHONUNBUFFERED: "1"\n  PYTHONDONTWRITEBYTECODE: "1"\n',
  },
  node: {
    about: "Node.js 20, ten minutes, no network",
    text: 'name: node\nruntime: node\nttl: 10m\nenv:\n  NODE_ENV: production\n  NO_UPDATE_NOTIFIER: "1"\n',
  },
  bash: {
    about: "Ubuntu 22.04 with bash, ten minutes, no network",
    text: "name: bash\nruntime: bash\nttl: 10m\n",
  },
} as const satisfies Record<string, { about: string; text: string }>;

export type TemplateName = keyof typeof TEMPLATES;

export const TEMPLATE_NAMES = Object.keys(TEMPLATES) as readonly TemplateName[];

export function isTemplateName(name: string): name is TemplateName {
  return Object.hasOwn(TEMPLATES, name);
}

/**
 * What a title or description must not hold, because it is handed to an agent as part of its orders. It is a net
 * for the known shapes, not a proof: what keeps a fooled agent harmless is the sandbox it runs in.
 * Texts are compared in lower case, in their compatibility form and with runs of white space as one blank.
 */
export const SCREENED: readonly { readonly what: string; readonly pattern: RegExp }[] = [
  {
    what: "orders to ignore instructions",
    pattern:
      /\b(?:ignore|disregard|forget|override|bypass|do not follow|don't follow)\b(?: \w+){0,3}? (?:previous|prior|above|earlier|preceding|existing|system|your|all|any)\b(?: \w+){0,3}? ?\b(?:instructions?|prompts?|rules|guidelines|directions|orders|context)\b/,
  },
  {
    what: "orders to ignore what came before",
    pattern:
      /\b(?:ignore|disregard|forget)\b (?:everything|all|anything)(?: \w+){0,2}? (?:above|before|so far|previously)\b/,
  },
  { what: "new instructions", pattern: /\b(?:new|updated|real|actual) (?:system )?instructions? ?:/ },
  {
    what: "a change of role",
    pattern:
      /\b(?:you are now (?:an?|the|in|dan)\b|from now on,? you\b|pretend (?:to be|you are|that you)\b|(?:enter|enable|switch to) (?:developer|jailbreak|dan|god) mode\b)/,
  },
  {
    what: "a question for the system prompt",
    pattern:
      /\b(?:reveal|print|show|repeat|leak|output|display)\b(?: \w+){0,4}? (?:system|hidden|initial|original) (?:prompt|instructions|message)\b/,
  },
  {
    what: "marks of a conversation's roles",
    pattern:
      /<\|[a-z_]+\|>|<\/?(?:system|assistant|human|instructions?|system-reminder|tool_result|function_calls?)\b[^>]*>|\[\/?inst\]|<<\/?sys>>|(?:^|\n) ?(?:#+ ?)?(?:system|assistant|human) ?:/,
  },
  {
    what: "orders to keep something from the user",
    pattern:
      /\b(?:do not|don't|never|without) (?:tell|telling|inform|informing|notify|notifying|alert|alerting|mention to|asking) the (?:user|human|operator|developer)\b/,
  },
  { what: "orders to leak something", pattern: /\bexfiltrat/ },
  {
    what: "a download that is run at once",
    pattern: /\b(?:curl|wget)\b[^|\n]*\| ?(?:sudo )?(?:ba|z|da)?sh\b/,
  },
];

/** Characters nobody sees or that turn what is seen around: controls, direction marks, blanks of no width, tags. */
const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/u;

/** What is wrong with the text, or undefined. */
export function screenText(text: string): string | undefined {
  if (HIDDEN.test(text)) return "hidden characters";
  const plain = text
    .normalize("NFKC")
    // Joiners are part of emoji and of some scripts' spelling, so they stay allowed but hide nothing.
    .replace(/\u200c|\u200d|[\ufe00-\ufe0f]/g, "")
    .toLowerCase()
    .replace(/[’ʼ]/g, "'")
    .replace(/[^\S\n]+/g, " ");
  const onOneLine = plain.replace(/\s+/g, " ");
  return SCREENED.find(({ pattern }) => pattern.test(plain) || pattern.test(onOneLine))?.what;
}

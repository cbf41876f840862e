import type { Server } from "node:http";

export type Part =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly input: object };

export interface Message {
  readonly role: string;
  readonly content: string | readonly { readonly type: string; readonly text?: string }[];
}

export function messagesApi(
  answerTo: (messages: readonly Message[], model: string) => readonly Part[] | Promise<readonly Part[]>,
): Server;

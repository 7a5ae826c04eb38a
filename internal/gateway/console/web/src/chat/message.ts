// A message of the assistant, as a UI message stream makes it. Arguments and results are kept as the texts that
// they are: a number of them keeps its digits, here and on its way back to the server.

import { content, member } from "../text/jsontext.js";
import type { Cause } from "./cause";
import type { Decision } from "../components/ApprovalCard";

export interface Part {
  type: string; // text, reasoning, file, step-start, tool-NAME
  id?: string;
  text?: string;
  state?: string;
  toolCallId?: string;
  input?: string;
  output?: string;
  errorText?: string;
  approval?: { id: string; approved?: boolean };
  decision?: Decision;
  providerMetadata?: { lathe?: { commentary?: boolean } };
  url?: string;
  mediaType?: string;
  filename?: string;
  began?: number; // ms since 1970 of this browser: when the call began to run
  ms?: number; // that the tool took
  progress?: { done: number; total?: number; message?: string };
  files?: { mediaType: string; url: string }[]; // of the result
  child?: string; // the run that the call started
  stale?: boolean; // it is shown, and is to be told again
  again?: string; // as far as it was told again
}

export interface Metadata {
  runId?: string;
  model?: string;
  reason?: string;
  turns?: number;
  toolCalls?: number;
  usage?: { inputTokens: number; outputTokens: number };
}

export interface Message {
  id: string;
  role: "user" | "assistant";
  parts: Part[];
  metadata?: Metadata;
  working?: boolean;
  lost?: boolean; // the connection to its stream
  problem?: { text: string; code?: string; cause?: Cause };
  told?: { id: string; parts: Part[] }; // what stored events up to id have told
  heard?: boolean;
  asked?: string; // the entry of models that was asked, "" for the default
  began?: number; // ms since 1970 of this browser: when the answer was asked for
  ended?: number; // ms since 1970 of the gateway: when its run had ended, if it had before the answer was read
  took?: number; // ms until it had ended
  seen?: number;
  looked?: number;
}

interface StreamPart {
  type: string;
  id: string;
  delta: string;
  messageId?: string;
  messageMetadata?: Metadata;
  providerMetadata?: Part["providerMetadata"];
  toolCallId: string;
  toolName: string;
  inputTextDelta: string;
  approvalId: string;
  errorText: string;
  url?: string;
  mediaType?: string;
  data?: { toolCallId: string; done: number; total?: number; message?: string; latencyMs?: number; runId?: string; mediaType: string; url: string };
}

// take puts one part of the stream into the message; data is its JSON, id that of the stored event which it ends.
// It returns the text of an error, where it is one.
export function take(message: Message, data: string, id?: string): string | undefined {
  const problem = apply(message, JSON.parse(data) as StreamPart, data);
  if (id) mark(message, id);
  return problem;
}

function apply(message: Message, part: StreamPart, data: string): string | undefined {
  const parts = message.parts;
  const tool = () => parts.findLast((p) => p.toolCallId === part.toolCallId) ?? ({} as Part);
  const text = () => parts.findLast((p) => p.id === part.id && !p.stale);
  switch (part.type) {
    case "start":
      message.id = part.messageId ?? message.id;
      message.metadata = { ...message.metadata, ...part.messageMetadata };
      break;
    case "start-step":
      add(parts, { type: "step-start" });
      break;
    case "text-start":
    case "reasoning-start": {
      const type = part.type.replace("-start", "");
      const facts = { id: part.id, state: "streaming", providerMetadata: part.providerMetadata };
      const stale = parts.find((p) => p.stale && p.type === type);
      if (stale) Object.assign(stale, facts, { stale: undefined, again: "" });
      else add(parts, { type, text: "", ...facts });
      break;
    }
    case "text-delta":
    case "reasoning-delta":
      say(text(), part.delta);
      break;
    case "text-end":
    case "reasoning-end":
      end(text());
      break;
    case "tool-input-start": {
      const stale = parts.find((p) => p.stale && p.toolCallId === part.toolCallId);
      const facts = { type: `tool-${part.toolName}`, toolCallId: part.toolCallId, state: "input-streaming", input: "" };
      if (stale) Object.assign(stale, facts, { stale: undefined });
      else add(parts, facts);
      break;
    }
    case "tool-input-delta":
      tool().input += part.inputTextDelta;
      break;
    case "tool-input-available":
      Object.assign(tool(), { state: "input-available", input: content(member(data, "input")), began: Date.now() });
      break;
    case "tool-approval-request":
      Object.assign(tool(), { state: "approval-requested", approval: { id: part.approvalId } });
      break;
    case "data-lathe-progress":
    case "data-lathe-executed":
    case "data-lathe-file": {
      const said = part.data!, call = parts.findLast((p) => p.toolCallId === said.toolCallId);
      if (!call) break;
      if (part.type === "data-lathe-progress") call.progress = { done: said.done, total: said.total, message: said.message };
      else if (part.type === "data-lathe-executed") Object.assign(call, { ms: said.latencyMs, child: said.runId, files: undefined });
      else call.files = [...call.files ?? [], { mediaType: said.mediaType, url: said.url }];
      break;
    }
    case "tool-output-available":
      Object.assign(tool(), { state: "output-available", output: content(member(data, "output")) });
      break;
    case "tool-output-error":
      Object.assign(tool(), { state: "output-error", errorText: part.errorText });
      break;
    case "tool-output-denied":
      Object.assign(tool(), { state: "output-denied" });
      break;
    case "file":
      add(parts, { type: "file", url: part.url, mediaType: part.mediaType });
      break;
    case "finish":
      message.metadata = { ...message.metadata, ...part.messageMetadata };
      break;
    case "abort":
      keep(parts);
      message.metadata = { ...message.metadata, reason: "cancelled" };
      break;
    case "error":
      keep(parts);
      return part.errorText;
  }
  return undefined;
}

// keep has the texts that are shown stay: the run ends, and tells none of them again.
function keep(parts: Part[]) {
  for (const p of parts) if (p.type === "text") Object.assign(p, { stale: undefined, again: undefined, state: "done" });
}

function add(parts: Part[], part: Part) {
  const i = parts.findIndex((p) => p.stale);
  parts.splice(i < 0 ? parts.length : i, 0, part);
}

// say adds to a text. One that is told again takes the place of what is shown once it is as long, or differs.
function say(p: Part | undefined, delta: string) {
  if (!p) return;
  if (p.again === undefined) {
    p.text += delta;
    return;
  }
  p.again += delta;
  if (p.again.length >= p.text!.length || !p.text!.startsWith(p.again)) {
    p.text = p.again;
    delete p.again;
  }
}

function end(p: Part | undefined) {
  if (!p) return;
  p.state = "done";
  if (p.again !== undefined) p.text = p.again;
  delete p.again;
}

const copy = (parts: Part[]) => parts.map((p) => ({ ...p }));

// isBehind reports whether text is shown that is to be told again: more of it comes once its model call has ended.
export const isBehind = (message: Message) => message.parts.some((p) => p.stale && p.type === "text");

// mark remembers the message as the stored events up to id have told it. What was told before a broken connection
// and not again by then is not part of it.
export function mark(message: Message, id = message.told?.id ?? "") {
  message.parts = message.parts.filter((p) => !p.stale);
  message.told = { id, parts: copy(message.parts) };
}

// rewind readies a message for a stream that tells again what came after the last stored event. What is shown of
// that stays until it is told.
export function rewind(message: Message) {
  const sure = message.told?.parts ?? [];
  const rest = message.parts.slice(sure.length).filter((p) => p.type !== "step-start" && p.type !== "file");
  message.parts = [...copy(sure), ...rest.map((p) => ({ ...p, stale: true, again: undefined }))];
}

// settle ends what a stream has left open.
export function settle(message: Message) {
  message.parts = message.parts.filter((p) => !p.stale || p.type === "text");
  for (const p of message.parts) {
    delete p.stale;
    delete p.again;
    if (p.state === "input-streaming") p.state = "input-available";
    if (p.state === "streaming") p.state = "done";
  }
}

export const waits = (message: Message) => message.parts.filter((p) => p.state === "approval-requested");
export const textOf = (message: Message) => message.parts.filter((p) => p.type === "text").map((p) => p.text ?? "").join("\n\n");

// titleOf is what lists show of a question: the first line of its text, else the name of its first file.
export function titleOf(message: Message): string {
  const text = message.parts.find((p) => p.type === "text" && !p.filename && p.text?.trim())?.text ?? "";
  return text.trim().split("\n", 1)[0]!.replace(/\s+/g, " ").slice(0, 120) || message.parts.find((p) => p.filename)?.filename || "";
}

const own: Record<string, (keyof Part)[]> = {
  text: ["type", "text", "state", "providerMetadata"], file: ["type", "url", "mediaType", "filename"],
  call: ["type", "toolCallId", "state", "input", "output", "errorText", "approval"],
};

// sent is the message as the server takes it, without what is the page's own.
export function sent(message: Message) {
  const pick = (p: Part, names: (keyof Part)[]) => Object.fromEntries(names.filter((n) => p[n] !== undefined).map((n) => [n, p[n]]));
  return { id: message.id, role: message.role, metadata: message.metadata, parts: message.parts.map((p) => pick(p, own[p.toolCallId ? "call" : p.type === "file" ? "file" : "text"]!)) };
}

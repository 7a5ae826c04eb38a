// What a model call was sent, as far as the log of its run has it.

import type { Message, RunEvent, StoredBlob } from "./types";

export interface ToolDefinition { name: string; description: string; parameters: unknown }

type Json = Record<string, unknown>;

// A StoredTool is a tool of the client in the input of a run.
interface StoredTool { Name?: string; Description?: string; Schema?: unknown }
interface Input { sampling?: Json; overrides?: { name: string; value: unknown }[]; user?: string; allow?: string[]; allow_none?: boolean; client_tools?: StoredTool[]; settings?: { ToolChoice?: { Mode?: string; Name?: string }; ToolChoiceEveryTurn?: boolean; ParallelToolCalls?: boolean | null } }

export interface Sent {
  messages: Message[];
  total: number; // messages that were sent; more than messages has if the log lacks some
  parameters?: Json; // by their names in chat completions; undefined: the log has none
  tools: number; // definitions that were sent
  hash: string; // of the definitions that were offered
  own: ToolDefinition[]; // of the client; the log has them
  allowed?: string[]; // the only tools of the gateway that were offered; undefined: all
}

// messagesAt returns the messages with which the model call of an event began: those of the run's start, and its answers and results until then.
function messagesAt(events: RunEvent[], at: number): Message[] {
  const messages: Message[] = [];
  let results: RunEvent[] = []; // of one turn, in any order
  const flush = () => {
    for (const { data: d, content } of results.toSorted((a, b) => (a.data.seq ?? 0) - (b.data.seq ?? 0))) messages.push({ role: "tool", parts: [{ type: "tool_result", id: d.tool_call_id, content: content?.result ?? "", blobs: content?.blobs as StoredBlob[] | undefined }] });
    results = [];
  };
  for (const e of events) {
    const { event_id: id, type, data: d, content } = e;
    if (id === undefined || id > at) continue;
    if (type === "ToolCallResult") results.push(e);
    else if (type === "RunStarted") messages.push(...content?.messages ?? []);
    else if (type === "ModelCallStarted") {
      flush();
      if (content?.asked) messages.push({ role: "user", parts: [{ type: "text", text: content.asked }] });
    } else if (type === "ModelCallFinished" && d.status === "success" && content?.message) messages.push(content.message);
  }
  return messages;
}

// parametersOf returns what a request has besides the model, the messages and the tools.
function parametersOf(input: Input, turn: number, tools: number): Json {
  const out: Json = {}, { settings: s } = input, choice = s?.ToolChoice;
  for (const [name, value] of Object.entries(input.sampling ?? {})) if (value !== null) out[name] = value;
  if (tools && choice?.Mode && (turn <= 1 || s?.ToolChoiceEveryTurn || choice.Mode === "auto" || choice.Mode === "none")) out.tool_choice = choice.Mode === "function" ? { type: "function", function: { name: choice.Name } } : choice.Mode;
  if (tools && typeof s?.ParallelToolCalls === "boolean") out.parallel_tool_calls = s.ParallelToolCalls;
  if (input.user) out.user = input.user;
  for (const { name, value } of input.overrides ?? []) out[name] = value;
  return out;
}

// sentIn returns what the model call that began with an event was sent.
export function sentIn(events: RunEvent[], started: RunEvent): Sent {
  const at = started.event_id ?? 0, run = events.find((e) => e.type === "RunStarted"), input = run?.content?.input as Input | undefined, tools = Number(started.data.tools ?? 0);
  const offered = run?.data.tools as { hash?: string } | undefined, loaded = events.findLast((e) => e.type === "ToolsLoaded" && (e.event_id ?? 0) < at);
  return {
    messages: messagesAt(events, at), total: started.data.messages ?? 0, tools, hash: loaded?.data.hash ?? offered?.hash ?? "",
    parameters: input && parametersOf(input, started.turn, tools), allowed: input?.allow_none ? [] : input?.allow,
    own: (input?.client_tools ?? []).map((t) => ({ name: t.Name ?? "", description: t.Description ?? "", parameters: t.Schema ?? noArguments })),
  };
}

// chatOf returns a message in the form of chat completions. Reasoning is left out: each server has a form of its own for it.
function chatOf({ role, parts = [] }: Message): Json[] {
  const results = parts.filter((p) => p.type === "tool_result");
  if (results.length) return results.map((r) => ({ role: "tool", tool_call_id: r.id, content: r.content ?? "" }));
  const text = parts.filter((p) => p.type === "text" || p.type === "refusal").map((p) => p.text ?? "").join("");
  const files = parts.filter((p) => p.type === "blob").map((p) => p as { media_type?: string; data?: string; url?: string }).map((p) => {
    const url = p.data ? `data:${p.media_type ?? ""};base64,${p.data}` : p.url ?? "";
    return p.media_type?.startsWith("image/") ? { type: "image_url", image_url: { url } } : { type: "file", file: { file_data: url } };
  });
  const calls = parts.filter((p) => p.type === "tool_call").map((p) => ({ id: p.id, type: "function", function: { name: p.name, arguments: p.arguments ?? "{}" } }));
  return [{ role, content: files.length ? [...text ? [{ type: "text", text }] : [], ...files] : text || (calls.length ? null : ""), ...calls.length ? { tool_calls: calls } : {} }];
}

export const chatMessages = (messages: Message[]) => messages.flatMap(chatOf);
export const chatTools = (tools: ToolDefinition[]) => tools.map((t) => ({ type: "function", function: t }));

const noArguments = { type: "object", properties: {} };

// canonical is the JSON of a value with the members of objects in the order of their names (RFC 8785).
const canonical = (v: unknown): string => Array.isArray(v) ? `[${v.map(canonical).join(",")}]`
  : v && typeof v === "object" ? `{${Object.keys(v).sort().map((k) => `${JSON.stringify(k)}:${canonical((v as Json)[k])}`).join(",")}}` : JSON.stringify(v) ?? "null";

// haveHash reports whether the definitions have the hash that a run recorded of those that it offered. undefined: this browser cannot compute it, since the
// page has no secure context. The API gives a tool without a schema that of any object.
export async function haveHash(tools: ToolDefinition[], hash: string): Promise<boolean | undefined> {
  const { subtle } = globalThis.crypto ?? {};
  if (!subtle) return undefined;
  const sorted = tools.toSorted((a, b) => a.name < b.name ? -1 : 1);
  for (const none of [false, true]) {
    const text = canonical(sorted.map(({ name, description, parameters: p }) => ({ name, description, parameters: none && canonical(p) === '{"type":"object"}' ? noArguments : p })));
    const sum = new Uint8Array(await subtle.digest("SHA-256", new TextEncoder().encode(text)));
    if ([...sum].map((b) => b.toString(16).padStart(2, "0")).join("") === hash) return true;
  }
  return false;
}

// The conversation of a run in the order of its messages, from its events.

import { failureName, ofResult } from "../state";
import { words } from "../text/format";
import type { Message, Part, RunEvent } from "./types";

export interface Call {
  id: string;
  name: string;
  args: string;
  event: number;
  proposed?: RunEvent;
  planned?: RunEvent;
  asked?: RunEvent;
  resolved?: RunEvent;
  executed?: RunEvent;
  result?: RunEvent;
  stored?: Part; // the result, where it was in the conversation with which the run began
  progress?: RunEvent; // the last report of its tool
}

export type Item = ItemOf & { step?: RunEvent }; // step: the end of the model call of which it is the first item

type ItemOf =
  | { kind: "text"; role: string; text: string; event: number; note?: string }
  | { kind: "call"; call: Call; event: number }
  | { kind: "note"; text: string; bad: boolean; event: number; removed?: number; attempts?: RunEvent[] }; // attempts: the ends of a turn's model calls that failed one after another

// modelFailure says why a model call failed, such as HTTP 503, server error: overloaded.
export function modelFailure({ data: d, content }: RunEvent): string {
  const status = (d.upstream_status ?? 0) >= 400 ? `HTTP ${d.upstream_status}, ` : "";
  return `${status}${failureName(d.error_code ?? "error")}${content?.error_message ? `: ${content.error_message}` : ""}`;
}

// attemptsText says in one line why the attempts of a model call failed.
function attemptsText(attempts: RunEvent[]): string {
  const why = [...new Set(attempts.map(modelFailure))];
  return attempts.length === 1 ? `The model call failed: ${why[0]}` : `${attempts.length} attempts${why.length === 1 ? `, each ${why[0]}` : ` failed: ${why.join("; ")}`}`;
}

// itemsOf returns the items of the stored events. The first of them, as many as history says, are what was said before the question of the run. system is the
// system text with which it began, which is no item.
// text and thought are what the model is writing now, writing the name of a tool whose call it is writing.
export function itemsOf(events: RunEvent[]): { items: Item[]; history: number; system: string; text: string; thought: string; writing: string } {
  const items: Item[] = [];
  const calls = new Map<string, Call>();
  let system = "", text = "", thought = "", writing = "", answered = "", history = 0;
  const said = (m: Message, event: number) => {
    for (const p of m.parts ?? []) {
      if (p.type === "text" && p.text) items.push({ kind: "text", role: m.role, text: p.text, event, note: p.commentary ? "commentary" : undefined });
      else if (p.type === "reasoning" || p.type === "signed_reasoning") { if (p.text) items.push({ kind: "text", role: m.role, text: p.text, event, note: "reasoning" }); }
      else if (p.type === "refusal" && p.text) items.push({ kind: "text", role: m.role, text: p.text, event, note: "refusal" });
      else if (p.type === "blob") items.push({ kind: "note", text: `A file of type ${p.media_type || "unknown"}`, bad: false, event });
      else if (p.type === "tool_call") {
        const call: Call = { id: p.id ?? "", name: p.name ?? "", args: p.arguments ?? "", event };
        calls.set(call.id, call);
        items.push({ kind: "call", call, event });
      } else if (p.type === "tool_result") {
        const call = calls.get(p.id ?? "");
        if (call) call.stored = p;
        else items.push({ kind: "text", role: "tool", text: p.content ?? "", event, note: p.is_error ? "error" : undefined });
      }
    }
  };
  for (const e of events) {
    const id = e.event_id ?? 0, d = e.data, call = calls.get(d.tool_call_id ?? "");
    if (e.removed_bytes) items.push({ kind: "note", text: "Content was removed under the retention settings", bad: false, event: id, removed: e.removed_bytes });
    switch (e.type) {
      case "RunStarted": {
        const messages = e.content?.messages ?? [], asked = messages.findLastIndex((m) => m.role === "user");
        messages.forEach((m, i) => {
          if (i === asked) history = items.length;
          if (m.role === "system" || m.role === "developer") system = [system, ...(m.parts ?? []).map((p) => p.text)].filter(Boolean).join("\n\n");
          else said(m, id);
        });
        break;
      }
      case "ModelCallStarted": text = thought = writing = ""; break;
      case "TextDelta": case "CommentaryDelta": text += e.content?.text ?? ""; break;
      case "ReasoningDelta": thought += e.content?.text ?? ""; break;
      case "ToolCallDelta": writing = d.tool ?? writing; break;
      case "ModelCallFinished": {
        text = thought = writing = "";
        const first = items.length;
        if (e.content?.message) {
          said(e.content.message, id);
          answered = (e.content.message.parts ?? []).filter((p) => p.type === "text").map((p) => p.text ?? "").join("");
        }
        if (d.status !== "success") {
          const last = items.at(-1), before = items.length === first && last?.kind === "note" && last.attempts?.[0]!.turn === e.turn ? last.attempts : undefined;
          if (before) items.pop();
          const attempts = [...before ?? [], e];
          items.push({ kind: "note", bad: true, event: id, text: attemptsText(attempts), attempts, step: before && e });
        }
        if (items[first]) items[first].step = e;
        break;
      }
      case "ToolCallParseError": items.push({ kind: "note", bad: true, event: id, text: `A call could not be read: ${d.error ?? ""}` }); break;
      case "ToolCallProposed": if (call) call.proposed = e; break;
      case "ToolCallPlanned": if (call) call.planned = e; break;
      case "ApprovalRequested": if (call) call.asked = e; break;
      case "ApprovalResolved": if (call) call.resolved = e; break;
      case "ToolCallProgress": if (call) call.progress = e; break;
      case "ToolCallExecuted": if (call) call.executed = e; break;
      case "ToolCallResult": if (call) call.result = e; break;
      case "RunFinished":
        if (e.content?.answer && e.content.answer !== answered) items.push({ kind: "text", role: "assistant", text: e.content.answer, event: id });
        if (d.status !== "completed") items.push({ kind: "note", bad: d.status === "failed", event: id, text: `The run ended: ${words(d.reason ?? "")}${d.limit ? `, limit ${d.limit}` : ""}${d.error_code && d.error_code !== d.reason ? `, ${failureName(d.error_code)}` : ""}` });
        break;
    }
  }
  return { items, history, system, text, thought, writing };
}

// ofCall is the state of a call, as state.ts names it.
export function ofCall({ result, stored, asked, resolved }: Call, live: boolean): string {
  if (result) return ofResult(result.data.status === "error" ? result.data.error_type || "error" : "");
  if (stored) return stored.is_error ? "failed" : "completed";
  return asked && !resolved ? "awaiting_approval" : live ? "running" : "no_result";
}

// questionOf returns the question of a run, "" if its events do not have it.
export function questionOf(events: RunEvent[]): string {
  const asked = events.find((e) => e.type === "RunStarted")?.content?.messages?.findLast((m) => m.role === "user");
  return asked?.parts?.find((p) => p.type === "text")?.text?.trim() ?? "";
}

// The spans of a run, from its events: model calls, tool calls with what they waited for, and the times in which the run waited.

import { failureName, ofResult, stateOf } from "../state";
import { micros, type RunEvent } from "./types";

export interface Span {
  id: string; // of the event that begins it
  event: number; // the same
  kind: "model" | "tool" | "pause";
  label: string;
  turn: number;
  from: number; // µs since 1970
  to: number | undefined; // undefined: it goes on
  state: string; // as state.ts names it
  note: string; // one line for people
  tokens?: { input_tokens: number; output_tokens: number }; // of a model call that has ended
  progress?: { done: number; total?: number }; // of a tool that runs
  parts: { kind: "first" | "approval" | "work" | "wait"; from: number; to: number | undefined }[]; // in order
}

// ranFor is how long a span did its work, in ms: a tool that was executed as long as that took, another one as long as it lasted. end is the time until which an
// open span lasts, in µs.
export function ranFor(s: Span, end: number): number {
  const ran = s.kind === "tool" ? s.parts.filter((p) => p.kind === "work") : [];
  return (ran.length ? ran.reduce((n, p) => n + (p.to ?? end) - p.from, 0) : (s.to ?? end) - s.from) / 1000;
}

// isIdle reports whether a tool ran for a part of its span, which is drawn in a colour of its own.
export const isIdle = (s: Span) => s.kind === "tool" && s.parts.some((p) => p.kind === "work");

// isRunning reports whether a span does its work now.
export const isRunning = (s: Span) => s.to === undefined && s.state === "running";

// coloursOf returns the colours of the legend that the spans have.
export function coloursOf(spans: Span[]): Set<string> {
  return new Set(spans.flatMap((s) => [s.kind, ...isIdle(s) ? ["idle"] : [], ...s.state === "failed" ? ["failed"] : [], ...isRunning(s) ? ["running"] : [], ...s.parts.map((p) => p.kind === "wait" ? "pause" : p.kind)]));
}

// spansOf returns the spans in the order of their beginnings.
export function spansOf(events: RunEvent[]): Span[] {
  const out: Span[] = [];
  const tools = new Map<string, Span>();
  let model: Span | undefined, pause: Span | undefined;
  const begin = (e: RunEvent, kind: Span["kind"], label: string, note = ""): Span => {
    const span: Span = { id: String(e.event_id), event: e.event_id!, kind, label, turn: e.turn, from: micros(e.time), to: undefined, state: "running", note, parts: [] };
    out.push(span);
    return span;
  };
  for (const e of events) {
    const at = micros(e.time), d = e.data, tool = d.tool_call_id ? tools.get(d.tool_call_id) : undefined;
    if (e.event_id === undefined) {
      if (e.type === "ToolCallProgress" && tool) tool.progress = { done: d.done ?? 0, total: d.total };
      else if (e.type.endsWith("Delta") && model && !model.parts.length) model.parts.push({ kind: "first", from: model.from, to: at }, { kind: "work", from: at, to: undefined });
      continue;
    }
    switch (e.type) {
      case "ModelCallStarted":
        if ((d.attempt ?? 1) > 1) {
          const before = out.findLast((s) => s.kind === "model" && s.turn === e.turn);
          if (before && !before.label.includes(", attempt ")) before.label += `, attempt ${d.attempt! - 1}`;
        }
        model = begin(e, "model", `${d.model ?? "model"}${(d.attempt ?? 1) > 1 ? `, attempt ${d.attempt}` : ""}`);
        break;
      case "ModelCallFinished":
        if (!model) break;
        model.to = at;
        model.parts = [];
        if (d.usage?.input_tokens || d.usage?.output_tokens) model.tokens = d.usage;
        model.state = d.status === "success" ? "completed" : "failed";
        if (d.latency_ms !== undefined && at - d.latency_ms * 1000 > model.from + 1000) { // the event of an attempt comes before its wait
          const began = at - d.latency_ms * 1000;
          model.parts.push({ kind: "wait", from: model.from, to: began });
          model.from = began;
        }
        if (d.first_token_ms) {
          const first = Math.min(at, model.from + d.first_token_ms * 1000);
          model.parts.push({ kind: "first", from: model.from, to: first }, { kind: "work", from: first, to: at });
        }
        if (model.state === "failed") model.note = [model.note, d.error_code && failureName(d.error_code)].filter(Boolean).join(", ");
        model = undefined;
        break;
      case "ToolCallPlanned":
        tools.set(d.tool_call_id!, begin(e, "tool", d.tool ?? "tool"));
        break;
      case "ApprovalRequested":
        if (!tool) break;
        tool.parts.push({ kind: "approval", from: at, to: undefined });
        tool.state = "awaiting_approval";
        break;
      case "ApprovalResolved": {
        const wait = tool?.parts.findLast((p) => p.kind === "approval");
        if (wait) wait.to = at;
        if (!tool) break;
        tool.note = `${stateOf(d.decision ?? "").name} by ${d.by || "nobody"}`;
        tool.state = "running";
        break;
      }
      case "ToolCallExecuted":
        if (!tool) break;
        tool.parts.push({ kind: "work", from: Math.max(tool.from, at - (d.latency_ms ?? 0) * 1000), to: at });
        if (d.cached) tool.note = "from the cache";
        else if (d.attempts && d.attempts > 1) tool.note = `${d.attempts} attempts`;
        break;
      case "ToolCallResult":
        if (!tool) break;
        tool.to = at;
        delete tool.progress;
        tool.state = ofResult(d.status === "error" ? d.error_type || "error" : "");
        for (const p of tool.parts) p.to ??= at;
        if (d.error_type) tool.note = [tool.note, d.error_type].filter(Boolean).join(", ");
        break;
      case "RunPaused":
        if (d.reason === "awaiting_approval") break; // the calls show what they wait for
        pause = begin(e, "pause", stateOf(d.reason ?? "parked").name, "");
        pause.state = d.reason ?? "parked";
        break;
      case "RunResumed":
        if (pause) Object.assign(pause, { to: at, state: "completed" });
        pause = undefined;
        break;
      case "RunFinished":
        for (const s of out.filter((s) => s.to === undefined)) Object.assign(s, { to: at, state: "cancelled" });
        break;
    }
  }
  return out;
}

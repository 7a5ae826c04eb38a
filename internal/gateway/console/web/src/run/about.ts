// What an event is about, in one line.

import { inOneLine } from "../components/CallCard";
import { failureName, type Kind } from "../state";
import { bytes, count, inAndOut, measured, words } from "../text/format";
import { questionOf } from "./items";
import type { RunEvent } from "./types";

const longest = 200; // characters of a text

const line = (text = "") => text.replace(/\s+/g, " ").trim().slice(0, longest);
const join = (...parts: (string | false | undefined)[]) => parts.filter(Boolean).join(" · ");

// aboutOf returns one line for people. args are the arguments of the event's call.
export function aboutOf(e: RunEvent, args = ""): string {
  const d = e.data, tool = d.tool_name ?? d.tool ?? "";
  switch (e.type) {
    case "RunStarted": return join(d.model, line(questionOf([e])));
    case "ModelCallStarted": return join(d.model, (d.attempt ?? 1) > 1 && `attempt ${d.attempt}`, count(d.messages ?? 0, "message"), count(Number(d.tools ?? 0), "tool"));
    case "ModelCallFinished": return d.status === "success" ? join(words(d.finish_reason ?? ""), measured(d.latency_ms ?? 0), inAndOut(d.usage, " tokens"), line(e.content?.message?.parts?.find((p) => p.type === "text")?.text))
      : join((d.attempt ?? 1) > 1 && `attempt ${d.attempt}`, failureName(d.error_code ?? "failed"), d.upstream_status ? `HTTP ${d.upstream_status}` : "", line(e.content?.error_message));
    case "ToolCallProposed": return join(tool, line(e.content?.raw_args && inOneLine(e.content.raw_args)));
    case "ToolCallPlanned": return join(tool, args && inOneLine(args));
    case "ApprovalRequested": return join(tool, d.rule && `rule ${d.rule}`);
    case "ApprovalResolved": return join(tool, words(d.decision ?? ""), `by ${d.by || "nobody"}`);
    case "ToolCallExecuted": return join(tool, measured(d.latency_ms ?? 0), d.success ? bytes(d.output_size_bytes ?? 0) : "failed", d.cached && "from the cache");
    case "ToolCallResult": return join(tool, d.error_type ? words(d.error_type) : "ok", line(e.content?.result));
    case "ToolCallParseError": return line(d.error);
    case "RunPaused": case "RunResumed": return words(d.reason ?? "");
    case "RunFinished": return join(words(d.reason ?? ""), d.error_code && d.error_code !== d.reason && failureName(d.error_code), line(e.content?.answer));
  }
  return join(tool || d.model, words(d.status ?? d.reason ?? ""));
}

// kindOf is the colour of an event: what failed, what waits for a person, and what ended well.
export function kindOf({ type, data: d }: RunEvent): Kind {
  if (d.error_type || d.error_code || d.success === false || type === "ToolCallParseError" || d.decision === "denied") return "bad";
  if (type === "ApprovalRequested" || type === "RunPaused") return "wait";
  return type === "RunFinished" && d.status === "completed" ? "ok" : "";
}

// partOf is whose doing an event is, as the colours of the timeline have it.
export const partOf = (type: string) => type.startsWith("ModelCall") ? "model" : /^Tool|^Approval/.test(type) ? "tool" : "run";

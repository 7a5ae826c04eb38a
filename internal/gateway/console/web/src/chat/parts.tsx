// The parts of a message as they are shown.

import { useState } from "preact/hooks";
import { Link, Time } from "../components/basics";
import { CauseLines } from "../components/Cause";
import { Markdown } from "../components/Markdown";
import { FileView } from "../components/ResultView";
import { count, measured, notReported, rate, words } from "../text/format";
import { chat } from "./chat";
import type { Cause } from "./cause";
import { isBehind, type Message, type Part } from "./message";
import { answeredBy } from "./models";
import { ToolGroup } from "./ToolCard";
import type { ComponentChildren } from "preact";
import { prose, visible } from "../text/visible.js";

// Messages and parts change in place: revision tells the components here that they have.
export function Parts({ message, revision, effects }: { message: Message; revision: number; effects: Map<string, string> }) {
  const shown: ComponentChildren[] = [];
  for (let i = 0; i < message.parts.length; i++) {
    const p = message.parts[i]!, isCall = p.toolCallId !== undefined, key = isCall ? `${i} calls` : `${i} ${p.type}`;
    let end = i;
    while (isCall && message.parts[end + 1]?.toolCallId !== undefined) end++;
    if (isCall) shown.push(<ToolGroup key={key} parts={message.parts.slice(i, end + 1)} message={message} revision={revision} effects={effects} />);
    else shown.push(<PartView key={key} part={p} message={message} />);
    i = end;
  }
  return <>{shown}</>;
}

function PartView({ part: p, message }: { part: Part; message: Message }) {
  if (p.type === "text" && p.text && p.filename && message.role === "user") return <details class="think"><summary dir="auto">{visible(p.filename)}</summary><div><pre>{prose(p.text)}</pre></div></details>;
  if (p.type === "text" && p.text) return <div class={`said${p.providerMetadata?.lathe?.commentary ? " commentary" : ""}`}>{message.role === "user" ? <Own text={p.text} /> : <Markdown text={p.text} />}</div>;
  if (p.type === "reasoning" && p.text) return <Reasoning text={p.text} />;
  if (p.type === "file") return <FileView file={{ mediaType: p.mediaType ?? "", url: p.url ?? "" }} name={p.filename} />;
  return null;
}

const longOwn = 4_000, linesOwn = 40; // beyond which a message of the user is folded

// Own is a text of the user. A long one is folded.
function Own({ text }: { text: string }) {
  const lines = text.split("\n", linesOwn + 1), long = text.length > longOwn || lines.length > linesOwn;
  const [open, set] = useState(false);
  const shown = long && !open ? lines.slice(0, linesOwn / 4).join("\n").slice(0, longOwn / 4) : text;
  return <><p dir="auto">{prose(shown)}{long && !open ? "…" : ""}</p>{long && <button type="button" class="quiet small" aria-expanded={open} onClick={() => set(!open)}>{open ? "Show less" : `Show all ${count(text.length, "character")}`}</button>}</>;
}

function Reasoning({ text }: { text: string }) {
  const [open, set] = useState(false);
  return <details class="think" onToggle={(e) => set(e.currentTarget.open)}><summary>Reasoning</summary>{open && <div><div class="said"><Markdown text={text} /></div></div>}</details>;
}

// what a person may do about a failure, by the code with which its text begins.
const next: Record<string, string> = {
  provider_unavailable: "Check that the model server runs (lathe doctor says what is wrong with it), then try again.",
  max_text: "Shorten the text, or raise the limit of the gateway (serve.max_text in lathe.yaml).",
  draining: "Wait until the gateway has started again, then try again.",
  overloaded: "Wait a moment, then try again.",
  rate_limited: "Wait a moment, then try again.",
  run_not_found: "The gateway has been started again, or has removed the run. Ask again.",
  internal: "The log of the gateway says why. Try again, or look at the run.",
};

// ProblemBox shows what went wrong, and what can be done.
export function ProblemBox({ text, code, cause, children }: { text: string; code?: string; cause?: Cause; children?: ComponentChildren }) {
  const cut = text.match(/^([a-z_]+): (.*)$/s);
  const hint = cause ? undefined : next[code || cut?.[1] || ""];
  return <div class="problem" role="alert"><b>{cause ? "The model server failed" : cut ? words(cut[1]!) : "That did not work"}</b>{!cause && <span>{visible(cut ? cut[2]! : text)}</span>}{cause && <CauseLines cause={cause} />}{hint && <span>{hint}</span>}<div class="answers">{children}</div></div>;
}

export const reasons: Record<string, string> = {
  max_iterations: "The run used all the model calls that it may make.",
  max_total_tool_calls: "The run used all the tool calls that it may make.",
  tool_loop: "The model repeated the same calls and was stopped.",
  run_timeout: "The run took too long and was stopped.",
  budget_exceeded: "The run used up its budget.",
  length: "The answer was cut off: it was too long for the model.",
  content_filter: "The model's content filter stopped the answer.",
  cancelled: "You stopped the run.",
};

export function Working({ message }: { message: Message; revision: number }) {
  const text = message.lost ? "The connection to the gateway is lost. Trying again…" : isBehind(message) ? "working: the rest of this text appears when the model call ends" : "working";
  return <div class={message.lost ? "working lost" : "working"}>{text}</div>;
}

// Facts say what an answer took, and lead to its run.
export function Facts({ message }: { message: Message; revision: number }) {
  const meta = message.metadata ?? {}, tokens = meta.usage ? meta.usage.inputTokens + meta.usage.outputTokens : 0, took = meta.reason === "awaiting_approval" ? 0 : message.took;
  const speed = took && meta.usage && !meta.toolCalls ? rate(meta.usage.outputTokens, took) : "";
  const model = answeredBy(message.asked, meta.model);
  return <>
    {model && <span>{visible(model)}{model.startsWith("sim/") ? " (simulated)" : ""}</span>}
    {took ? <span class="num">{measured(took)}</span> : null}
    {speed && <span class="num">{speed}</span>}
    {tokens ? <span class="num">{count(tokens, "token")}</span> : meta.usage && !message.problem ? <span>tokens {notReported}</span> : null}
    {meta.turns ? <span>{count(meta.turns, "model call")}</span> : null}
    {meta.toolCalls ? <span>{count(meta.toolCalls, "tool call")}</span> : null}
    {message.began && <Time at={new Date(message.began).toISOString()} />}
    {meta.runId && chat.durable && <Link to={`/runs/${encodeURIComponent(meta.runId)}`}>see the run</Link>}
  </>;
}

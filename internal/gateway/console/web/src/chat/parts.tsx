// The parts of a message as they are shown.

import { useEffect, useRef, useState } from "preact/hooks";
import { ApprovalCard, decidedText } from "../components/ApprovalCard";
import { Badge, JsonView, Link } from "../components/basics";
import { Markdown } from "../components/Markdown";
import { count, words } from "../text/format";
import { chat } from "./chat";
import { isBehind, type Message, type Part } from "./message";
import type { ComponentChildren } from "preact";
import { prose, visible } from "../text/visible.js";

const states: Record<string, [kind: "" | "ok" | "wait" | "bad" | "run", word: string]> = {
  "input-streaming": ["run", "◌ writing the call"],
  "input-available": ["run", "◌ running"],
  "approval-requested": ["wait", "● asks for your approval"],
  "output-available": ["ok", "✓ done"],
  "output-error": ["bad", "✗ failed"],
  "output-denied": ["bad", "⊘ denied"],
};

function stateOf(p: Part, working: boolean) {
  if (p.state === "input-available" && !working) return ["wait", "○ waits"] as const;
  if (p.state === "approval-responded") return p.approval?.approved ? ["run", "◌ approved"] as const : ["bad", "⊘ denied"] as const;
  return states[p.state ?? ""] ?? ["", p.state ?? ""] as const;
}

// ToolPart is one call: its arguments and what became of it. It is open while it asks, and where it failed.
function ToolPart({ part: p, message, effect }: { part: Part; message: Message; revision: number; effect?: string }) {
  const summary = useRef<HTMLElement>(null);
  const asks = p.state === "approval-requested", failed = p.state === "output-error" || p.state === "output-denied";
  const [touched, setTouched] = useState<boolean>();
  const open = asks || (touched ?? p.state === "output-error");
  const card = asks ? chat.cards.get(p.approval!.id) : undefined;
  const [kind, word] = stateOf(p, message.working ?? false);
  const name = p.type.slice("tool-".length);
  useEffect(() => {
    if (chat.focusWanted !== p.toolCallId || asks && !card) return;
    chat.focusWanted = undefined;
    summary.current?.focus();
  });
  return <details class={`tool${asks ? " asks" : ""}${failed ? " failed" : ""}`} open={open} onToggle={(e) => { if (e.currentTarget.open !== open) setTouched(e.currentTarget.open); }}>
    <summary ref={summary}><b>{visible(name)}</b>{effect && <span class={`tag ${effect}`}>{words(effect)}</span>}<span class="state"><Badge kind={kind}>{word}</Badge></span></summary>
    {open && <div>
      {asks ? card ? <ApprovalCard key={p.approval!.id} runId={card.runId} call={card.call} decision={card.decision} onDecided={(d, _run, focused) => chat.decided(message, p.approval!.id, d, focused)} /> : <p class="soft">…</p> : <>
        {p.decision && <p class="meta">{decidedText(p.decision)}</p>}
        <h2 class="label">Arguments</h2><JsonView text={p.input || "{}"} label="Arguments" />
        {p.state === "output-available" && <><h2 class="label">Result</h2><JsonView text={p.output ?? ""} label="Result" /></>}
        {p.state === "output-error" && <><h2 class="label">Failure</h2><JsonView text={p.errorText ?? ""} label="Failure" /></>}
      </>}
    </div>}
  </details>;
}

// Messages and parts change in place: revision tells the components here that they have.
export function PartView({ part: p, message, revision, effects }: { part: Part; message: Message; revision: number; effects: Map<string, string> }) {
  if (p.toolCallId !== undefined) return <ToolPart part={p} message={message} revision={revision} effect={effects.get(p.type.slice("tool-".length))} />;
  if (p.type === "text" && p.text) return <div class={`said${p.providerMetadata?.lathe?.commentary ? " commentary" : ""}`}>{message.role === "user" ? prose(p.text) : <Markdown text={p.text} />}</div>;
  if (p.type === "reasoning" && p.text) return <Reasoning text={p.text} />;
  if (p.type === "file") return <p class="meta">A file of type {visible(p.mediaType ?? "")}</p>;
  return null;
}

function Reasoning({ text }: { text: string }) {
  const [open, set] = useState(false);
  return <details class="think" onToggle={(e) => set(e.currentTarget.open)}><summary>Reasoning</summary>{open && <div><div class="said"><Markdown text={text} /></div></div>}</details>;
}

// what a person may do about a failure, by the code with which its text begins.
const next: Record<string, string> = {
  provider_unavailable: "Check that the model server runs (lathe doctor says what is wrong with it), then try again.",
  max_text: "Shorten the text, or raise serve.max_text.",
  draining: "Wait until the server has started again, then try again.",
  overloaded: "Wait a moment, then try again.",
  rate_limited: "Wait a moment, then try again.",
  run_not_found: "The server has been started again, or has removed the run. Ask again.",
  internal: "The server's log says why. Try again, or look at the run.",
};

// ProblemBox shows what went wrong, and what can be done.
export function ProblemBox({ text, code, children }: { text: string; code?: string; children?: ComponentChildren }) {
  const cut = text.match(/^([a-z_]+): (.*)$/s);
  const hint = next[code || cut?.[1] || ""];
  return <div class="problem" role="alert"><b>{cut ? words(cut[1]!) : "That did not work"}</b><span>{visible(cut ? cut[2]! : text)}</span>{hint && <span>{hint}</span>}<div class="answers">{children}</div></div>;
}

export const reasons: Record<string, string> = {
  max_iterations: "The run used all the model calls that it may make.",
  max_total_tool_calls: "The run used all the tool calls that it may make.",
  tool_loop: "The model went round in circles and was stopped.",
  run_timeout: "The run took too long and was stopped.",
  budget_exceeded: "The run used up its budget.",
  length: "The answer was cut off: it was too long for the model.",
  content_filter: "The model's content filter stopped the answer.",
  cancelled: "You stopped the run.",
};

export function Working({ message }: { message: Message; revision: number }) {
  const text = message.lost ? "The connection to the server is lost. Trying again…" : isBehind(message) ? "working: the rest of this text appears when the model call ends" : "working";
  return <div class={message.lost ? "working lost" : "working"}>{text}</div>;
}

// Facts are the line below an answer.
export function Facts({ message }: { message: Message; revision: number }) {
  const meta = message.metadata ?? {}, tokens = meta.usage ? meta.usage.inputTokens + meta.usage.outputTokens : 0;
  return <>
    {meta.model && <span>{visible(meta.model)}{meta.model.startsWith("sim/") ? " (simulated)" : ""}</span>}
    {meta.turns ? <span>{count(meta.turns, "model call")}</span> : null}
    {meta.toolCalls ? <span>{count(meta.toolCalls, "tool call")}</span> : null}
    {tokens ? <span>{count(tokens, "token")}</span> : null}
    {meta.runId && chat.durable && <Link to={`/runs/${encodeURIComponent(meta.runId)}`}>see the run</Link>}
  </>;
}
